// The same bits in every schedule: asynchronous operations complete at once, as late as they may,
// or at random, and the sanitizer has nothing to say. Rings that go around several times, tiles of
// both widths, several CTAs, a copy before the kernel.
#include "kernels/sm100a_skinny/simulated_run.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

using ptxsim::Schedule;

constexpr uint64_t kSeeds = 12;  // of the random and of the lazy schedule

void expect_same_in_every_schedule(int64_t m, int tile_n, int64_t k) {
  Problem p{.m = m, .n = tile_n + 2, .k = k, .d = {.type = DataType::kF32}};
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;  // Up stays linear: one copy
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  SkinnyRun eager{.tile_n = tile_n};
  ASSERT_TRUE(simulate(data, eager));
  ASSERT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
  EXPECT_EQ(eager.launches, 2u);
  const std::vector<uint8_t> bits(data.d.data.begin(), data.d.data.end());
  for (const Schedule schedule : {Schedule::kLazy, Schedule::kRandom}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SkinnyRun run{.tile_n = tile_n};
      run.options.schedule = schedule;
      run.options.seed = seed;
      data.poison_d();
      ASSERT_TRUE(simulate(data, run));
      ASSERT_TRUE(std::equal(bits.begin(), bits.end(), data.d.data.begin()))
          << describe(run.options);
    }
  }
}

TEST(Sm100aSkinnySchedules, OneRow) { expect_same_in_every_schedule(1, 64, 256 * 19 - 64); }
TEST(Sm100aSkinnySchedules, NarrowTile) { expect_same_in_every_schedule(12, 32, 256 * 15 - 128); }
TEST(Sm100aSkinnySchedules, ManyRows) { expect_same_in_every_schedule(70, 64, 256 * 6 - 64); }
TEST(Sm100aSkinnySchedules, FewerTilesOfKThanStages) { expect_same_in_every_schedule(40, 32, 192); }

}  // namespace
}  // namespace dualgemm::test
