// Which tiles the kernel for few rows is given.
#include "cuda/kernels/sm90a_skinny/launch.hpp"
#include "support/nvfp4_output.hpp"

namespace dualgemm::test {
namespace {

// Only tiles of whole blocks are chosen.
TEST(Sm90aSkinnyNvfp4Output, TilesHaveWholeBlocks) {
  namespace skinny = cuda::sm90a_skinny;
  for (int64_t n = 16; n < 4096; n += 208) {
    const Problem p = with_nvfp4_output({.m = 4, .n = n, .k = 256}, true, false);
    for (const bool prepared : {false, true})
      EXPECT_EQ(skinny::choose_instance(p, 132, prepared).config.units % 2, 0) << n;
    EXPECT_EQ(skinny::find_instance(p, 8, false), nullptr);
    EXPECT_EQ(skinny::find_instance(p, 24, true), nullptr);
  }
}

}  // namespace
}  // namespace dualgemm::test
