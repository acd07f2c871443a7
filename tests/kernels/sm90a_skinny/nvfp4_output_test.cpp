// D as NVFP4, of weights as they are and prepared: the FP32 result of the same kernel, quantised.
#include "support/nvfp4_output.hpp"
#include "kernels/sm90a_skinny/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm90aSkinnyNvfp4Output, IsTheWideOutputQuantized) {
  int next = 0;
  for (const bool prepared : {false, true}) {
    for (const int64_t cols : {16, 32}) {
      for (const int64_t m : {1, 2, 7, 8, 9, 16}) {
        if (m > cuda::sm90a_skinny::most_rows(prepared)) continue;
        Problem p{.m = m, .n = 48, .k = 832, .l = 1 + next % 2, .a = {.type = kTypesOfA[next % 3]}};
        p.bias = static_cast<BiasType>(next % 3);
        p = with_nvfp4_output(p, next / 3 % 2 == 0, next % 3 == 0);
        SCOPED_TRACE(::testing::Message() << "m " << m << " cols " << cols << " prepared "
                                          << prepared << " case " << next);
        TwoOutputs both(p);
        both.change([next](RandomCase& data) { make_extreme(data, next); });
        const SimulatedRun run{.cols = cols, .prepared = prepared};
        ASSERT_TRUE(simulate(both.wide, run));
        ASSERT_TRUE(simulate(both.narrow, run));
        EXPECT_TRUE(both.agree());
        ++next;
      }
    }
  }
}

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
