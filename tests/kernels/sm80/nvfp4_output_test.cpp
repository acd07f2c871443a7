// D as NVFP4, by every pass: the FP32 result of the same kernel, quantised.
#include "support/nvfp4_output.hpp"
#include "kernels/sm80/simulated_run.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

void expect_quantized(const Problem& p, const SimulatedRun& run, int extreme = 0) {
  SCOPED_TRACE(::testing::Message()
               << "m " << p.m << " n " << p.n << " l " << p.l << ", a " << name_of(p.a.type) << ", "
               << name_of(p.d.scale_layout) << ", ld " << p.d.ld << ", tile_m " << run.tile_m
               << ", misalign " << run.misalign << ", " << name_of(run.passes) << ", extreme "
               << extreme);
  TwoOutputs both(p);
  both.change([extreme](RandomCase& data) { make_extreme(data, extreme); });
  ASSERT_TRUE(simulate(both.wide, run));
  ASSERT_TRUE(simulate(both.narrow, run));
  EXPECT_TRUE(both.agree());
}

TEST(Sm80Nvfp4Output, IsTheWideOutputQuantized) {
  int next = 0;
  for (const Passes& passes : kPasses) {
    for (const int64_t m : {1, 8, 9, 63, 130}) {
      for (const int64_t n : {16, 48, 80}) {
        Problem p{.m = m, .n = n, .k = 144, .l = 1 + next % 2, .a = {.type = kTypesOfA[next % 3]}};
        p.bias = static_cast<BiasType>(next % 3);
        expect_quantized(with_nvfp4_output(p, next % 2 == 0, next % 3 == 0),
                         {.misalign = next % 4, .passes = passes}, next);
        ++next;
      }
    }
  }
}

TEST(Sm80Nvfp4Output, IsWithinTheBoundOfTheOracle) {
  int next = 0;
  for (const Passes& passes : kPasses) {
    Problem p = with_nvfp4_output({.m = 70, .n = 48, .k = 1040}, next++ % 2 == 0, false);
    Rng rng;
    RandomCase data(p, rng, Values::kRandom);
    data.poison_d();
    ASSERT_TRUE(simulate(data, {.passes = passes}));
    EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
  }
}

}  // namespace
}  // namespace dualgemm::test
