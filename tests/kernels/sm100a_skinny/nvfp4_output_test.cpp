// D as NVFP4: the FP32 result of the same kernel, quantised.
#include "support/nvfp4_output.hpp"
#include "kernels/sm100a_skinny/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm100aSkinnyNvfp4Output, IsTheWideOutputQuantized) {
  int next = 0;
  for (const int tile_n : {64, 32}) {
    for (const int64_t m : {1, 9, 33, 100, 128}) {
      Problem p{.m = m, .n = 48 + next % 3 * 48, .k = 272, .l = 1 + next % 2};
      p.bias = static_cast<BiasType>(next % 3);
      p = with_nvfp4_output(p, next % 2 == 0 || next % 3 == 1, next % 3 == 0);
      SCOPED_TRACE(::testing::Message() << "m " << m << " tile_n " << tile_n << " case " << next);
      TwoOutputs both(p);
      both.change([next](RandomCase& data) { make_extreme(data, next); });
      SkinnyRun run{.tile_n = tile_n, .misalign = next % 2};
      ASSERT_TRUE(simulate(both.wide, run));
      ASSERT_TRUE(simulate(both.narrow, run));
      EXPECT_TRUE(both.agree());
      ++next;
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
