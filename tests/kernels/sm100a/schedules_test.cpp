// The same bits in every schedule, and the sanitizer has nothing to say. Rings that go around
// several times, tiles of both widths, several CTAs, copies before the kernel.
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm100a/simulated_run.hpp"

namespace dualgemm::test {
namespace {

constexpr uint64_t kSeeds = 20;  // of the random and of the lazy schedule

Problem schedule_problem(int64_t k) {
  Problem p{.m = 129, .n = 130, .k = k, .d = {.type = DataType::kF32}};
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;  // Up stays linear: one copy
  return p;
}

void expect_same_in_every_schedule(int tile_n, int64_t k) {
  Rng rng;
  const Problem p = schedule_problem(k);
  RandomCase data(p, rng, Values::kWide);
  expect_same_bits_in_schedules(data, SimulatedRun{.tile_n = tile_n}, kSeeds,
                                reference::Accumulation::kTensorCoreStep,
                                [](const SimulatedRun& run) { EXPECT_EQ(run.launches, 2u); });
}

TEST(Sm100aSchedules, NarrowTile) { expect_same_in_every_schedule(64, 256 * 11 - 64); }
TEST(Sm100aSchedules, WideTile) { expect_same_in_every_schedule(128, 256 * 9 - 128); }
TEST(Sm100aSchedules, FewerTilesOfKThanStages) { expect_same_in_every_schedule(64, 192); }

}  // namespace
}  // namespace dualgemm::test
