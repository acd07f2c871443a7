// D as NVFP4 by every kernel that runs here: its own FP32 result, quantised by the CPU's recipe.
#include "support/nvfp4_output.hpp"

#include "unit/cuda/tested_kernel.hpp"

namespace dualgemm::test {
namespace {

TEST_P(EveryKernelOnGpu, WritesNvfp4AsItsWideOutputQuantized) {
  const TestedKernel& kernel = GetParam();
  if (kernel.tile_n % 16 != 0) return;  // it is never chosen: every_kernel_test tries its others
  int next = 0;
  for (const int64_t m : {1, 7, 16, 65, 129, 300}) {
    for (const int64_t n : {16, 80, 336}) {
      Problem p{.m = rows_for(kernel, m), .n = n, .k = k_for(kernel, 784), .l = 1 + next % 2};
      p.a.type = kernel.a_types[static_cast<size_t>(next) % kernel.a_types.size()];
      p.bias = static_cast<BiasType>(next % 3);
      p = with_nvfp4_output(p, next % 2 == 0, next % 3 == 0);
      SCOPED_TRACE(::testing::Message() << "m " << p.m << " n " << n << " case " << next);
      TwoOutputs both(p);
      both.change([next](RandomCase& data) { make_extreme(data, next); });
      const int64_t ctas = next % 4 == 3 ? 5 : 0;
      KernelRun(kernel, both.wide, ctas).run(both.wide);
      KernelRun(kernel, both.narrow, ctas).run(both.narrow);
      ASSERT_TRUE(both.agree());
      ++next;
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
