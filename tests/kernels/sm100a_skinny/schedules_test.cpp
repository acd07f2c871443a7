// The same bits in every schedule, and the sanitizer has nothing to say. Rings that go around
// several times, tiles of both widths, several CTAs, a copy before the kernel.
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm100a_skinny/simulated_run.hpp"

namespace dualgemm::test {
namespace {

constexpr uint64_t kSeeds = 12;  // of the random and of the lazy schedule

void expect_same_in_every_schedule(int64_t m, int tile_n, int64_t k) {
  Problem p{.m = m, .n = tile_n + 2, .k = k, .d = {.type = DataType::kF32}};
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;  // Up stays linear: one copy
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  expect_same_bits_in_schedules(data, SkinnyRun{.tile_n = tile_n}, kSeeds,
                                reference::Accumulation::kTensorCoreStep,
                                [](const SkinnyRun& run) { EXPECT_EQ(run.launches, 2u); });
}

TEST(Sm100aSkinnySchedules, OneRow) { expect_same_in_every_schedule(1, 64, 256 * 19 - 64); }
TEST(Sm100aSkinnySchedules, NarrowTile) { expect_same_in_every_schedule(12, 32, 256 * 15 - 128); }
TEST(Sm100aSkinnySchedules, ManyRows) { expect_same_in_every_schedule(70, 64, 256 * 6 - 64); }
TEST(Sm100aSkinnySchedules, FewerTilesOfKThanStages) { expect_same_in_every_schedule(40, 32, 192); }

}  // namespace
}  // namespace dualgemm::test
