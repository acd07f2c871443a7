// The same bits in every schedule, and the sanitizer has nothing to say. Rings that go around,
// tiles of both widths, several pairs, copies before the kernel, a grid before it that is still at
// work.
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"

namespace dualgemm::test {
namespace {

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
  const SimulatedRun fixed{.tile_n = tile_n, .prepared = prepared};
  expect_same_bits_in_schedules(data, fixed, seeds, reference::Accumulation::kTensorCoreStep,
                                [prepared](const SimulatedRun& run) {
                                  EXPECT_EQ(run.launches, prepared ? 1u : 2u);
                                  EXPECT_TRUE(run.result.reports.list.empty())  // no warning either
                                      << ptxsim::to_string(run.result.reports.list.front());
                                });
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
