// The same bits in every schedule: asynchronous operations complete at once, as late as they may,
// or at random, and the sanitizer has nothing to say. Rings that go around, tiles of both widths,
// several pairs, copies before the kernel, a grid before it that is still at work.
#include "kernels/sm100a_pair/simulated_run.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

using ptxsim::Schedule;

constexpr uint64_t kSeeds = 12;  // of the random and of the lazy schedule

Problem schedule_problem(int64_t k) {
  Problem p{.m = 150, .n = 70, .k = k, .d = {.type = DataType::kF32}};
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;  // Up stays linear: one copy
  return p;
}

void expect_same_in_every_schedule(int tile_n, int64_t k, bool prepared = false,
                                   uint64_t seeds = kSeeds) {
  Rng rng;
  const Problem p = schedule_problem(k);
  RandomCase data(p, rng, Values::kWide);
  SimulatedRun eager{.tile_n = tile_n, .prepared = prepared};
  ASSERT_TRUE(simulate(data, eager));
  ASSERT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
  EXPECT_EQ(eager.launches, prepared ? 1u : 2u);
  const std::vector<uint8_t> bits(data.d.data.begin(), data.d.data.end());
  for (const Schedule schedule : {Schedule::kLazy, Schedule::kRandom}) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      SimulatedRun run{.tile_n = tile_n, .prepared = prepared};
      run.options.schedule = schedule;
      run.options.seed = seed;
      data.poison_d();
      ASSERT_TRUE(simulate(data, run));
      ASSERT_TRUE(run.result.reports.list.empty())  // no warning or advisory either
          << ptxsim::to_string(run.result.reports.list.front());
      ASSERT_TRUE(std::equal(bits.begin(), bits.end(), data.d.data.begin()))
          << describe(run.options);
    }
  }
}

TEST(Sm100aPairSchedules, NarrowTile) { expect_same_in_every_schedule(64, 256 * 15 - 64); }
TEST(Sm100aPairSchedules, WideTile) { expect_same_in_every_schedule(128, 256 * 11 - 128); }
// Twenty seeds of both schedules together, of a scale tile that Gate and Up share and of two; fewer
// of the other tiles.
TEST(Sm100aPairSchedules, PreparedSharedScaleTile) {
  expect_same_in_every_schedule(48, 256 * 17 - 64, true, 10);
}
TEST(Sm100aPairSchedules, PreparedTwoScaleTiles) {
  expect_same_in_every_schedule(112, 256 * 13 - 64, true, 10);
}
TEST(Sm100aPairSchedules, PreparedOtherTiles) {
  for (const int tile_n : {64, 80, 96, 128})
    expect_same_in_every_schedule(tile_n, 256 * 9 - 64, true, 2);
}
TEST(Sm100aPairSchedules, FewerTilesOfKThanStages) { expect_same_in_every_schedule(64, 192); }

}  // namespace
}  // namespace dualgemm::test
