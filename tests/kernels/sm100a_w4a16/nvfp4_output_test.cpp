// D as NVFP4: the FP32 result of the same kernel, quantised.
#include "support/nvfp4_output.hpp"
#include "kernels/sm100a_w4a16/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm100aW4a16Nvfp4Output, IsTheWideOutputQuantized) {
  int next = 0;
  for (const int64_t m : {1, 9, 33, 64, 70, 200}) {
    Problem p{.m = m, .n = 48 + next % 3 * 48, .k = 272, .l = 1 + next % 2};
    p.a.type = type_of_rows(next);
    p.bias = static_cast<BiasType>(next % 3);
    p = with_nvfp4_output(p, next % 2 == 0 || next % 3 == 1, next % 3 == 0);
    SCOPED_TRACE(::testing::Message() << "m " << m << " case " << next);
    TwoOutputs both(p);
    both.change([next](RandomCase& data) { make_extreme(data, next); });
    W4a16Run run{.split = next % 2 + 1, .misalign = next % 2};
    ASSERT_TRUE(simulate(both.wide, run));
    ASSERT_TRUE(simulate(both.narrow, run));
    EXPECT_TRUE(both.agree());
    ++next;
  }
}

}  // namespace
}  // namespace dualgemm::test
