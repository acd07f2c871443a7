// The second product as a node of one of CUTLASS's visitor trees: against the oracle, and the same
// bits in every schedule.
#include <vector>

#include "kernels/cutlass/simulated_gated.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

using ptxsim::Schedule;
using reference::Accumulation;

TEST(GatedVisitor, SiluOfOneProductTimesTheOther) {
  Problem p = swizzled({.m = 140, .n = 150, .k = 592, .l = 2});
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  for (int64_t l = 0; l < p.l; ++l) {
    data.alpha_gate_per_batch.push_back(rng.uniform(0.25f, 2.0f));
    data.alpha_up_per_batch.push_back(rng.uniform(-2.0f, 2.0f));
  }
  GatedRun run{.instance = cuda::gated::visitor_1sm(), .misalign = 9};
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), Accumulation::kTensorCoreStep));
}

// One cluster does all tiles, or four at a time: both accumulators, more than once.
TEST(GatedVisitor, TheSameBitsInEverySchedule) {
  Problem p = swizzled({.m = 100, .n = 520, .k = 768});
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  std::vector<uint8_t> bits;
  for (const Schedule schedule : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
    for (uint64_t seed = 1; seed <= (schedule == Schedule::kEager ? 1 : kSeeds); ++seed) {
      GatedRun run{.instance = cuda::gated::visitor_1sm()};
      run.options.schedule = schedule;
      run.options.seed = seed;
      run.options.resident_clusters = seed % 4 == 2 ? 4 : 1;
      data.poison_d();
      ASSERT_TRUE(simulate(data, run)) << describe(run.options);
      const std::vector<uint8_t> now(data.d.data.begin(), data.d.data.end());
      if (bits.empty()) {
        ASSERT_TRUE(within_bound(p, data.buffers(), Accumulation::kTensorCoreStep));
        bits = now;
      }
      EXPECT_EQ(bits, now) << describe(run.options);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
