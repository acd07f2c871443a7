// The second product as a node of one of CUTLASS's visitor trees: against the oracle, and the same
// bits in every schedule.
#include <vector>

#include "kernels/cutlass/simulated_gated.hpp"
#include "support/bound.hpp"
#include "support/factors.hpp"

namespace dualgemm::test {
namespace {

using reference::Accumulation;

TEST(GatedVisitor, SiluOfOneProductTimesTheOther) {
  Problem p = swizzled({.m = 140, .n = 150, .k = 592, .l = 2});
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  add_alphas(data, rng);
  GatedRun run{.instance = cuda::gated::visitor_1sm(), .misalign = 9};
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), Accumulation::kTensorCoreStep));
}

// One cluster does all tiles, or four at a time: both accumulators, more than once.
TEST(GatedVisitor, TheSameBitsInEverySchedule) {
  Problem p = swizzled({.m = 100, .n = 520, .k = 768});
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  expect_same_gated_bits_in_schedules(data, cuda::gated::visitor_1sm());
}

}  // namespace
}  // namespace dualgemm::test
