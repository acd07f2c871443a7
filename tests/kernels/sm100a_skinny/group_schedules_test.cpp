// Tiles of groups in every schedule, and beside the grid before: as schedules_test.cpp and
// overlap_test.cpp have it.
#include "kernels/simulation/overlap.hpp"
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm100a_skinny/simulated_run.hpp"
#include "support/grouped.hpp"

namespace dualgemm::test {
namespace {

constexpr uint64_t kSeedsOfGroups = 12;  // of the random and of the lazy schedule

// Tiles that begin anywhere in a scale tile of A, several for each of two CTAs.
void expect_same_tiles_in_every_schedule(int tile_m, int64_t m, int64_t k, DataType output) {
  Problem p{.m = m, .n = 80, .k = k, .l = 4, .d = {.type = output}};
  p.grouping = Grouping::kContiguous;
  p.gate.scale_layout = p.up.scale_layout = ScaleLayout::kSwizzled128x4;
  const bool copies = k % 256 != 0;  // of A's scales, which are linear
  p.d.scale_layout = ScaleLayout::kSwizzled128x4;
  if (output != DataType::kE2M1) p.d.scale_layout = ScaleLayout::kLinear;
  Rng rng;
  const auto rows = static_cast<int32_t>(m);
  RandomCase data(p, rng, Values::kWide, {0, rows / 2 + 1, rows / 2 + 1, rows - 3, rows});
  const SkinnyRun fixed{.tile_m = tile_m, .max_ctas = 2};
  expect_same_bits_in_schedules(
      data, fixed, kSeedsOfGroups, reference::Accumulation::kTensorCoreStep,
      [copies](const SkinnyRun& run) { EXPECT_EQ(run.launches, copies ? 3u : 2u); });
}

TEST(Sm100aSkinnyGroupSchedules, ShortTiles) {
  expect_same_tiles_in_every_schedule(16, 70, 256 * 3 - 64, DataType::kF32);
}
TEST(Sm100aSkinnyGroupSchedules, RingsGoAroundInATile) {
  expect_same_tiles_in_every_schedule(32, 70, 256 * 9, DataType::kE2M1);
}
TEST(Sm100aSkinnyGroupSchedules, ManyRows) {
  expect_same_tiles_in_every_schedule(64, 300, 320, DataType::kF32);
}

TEST(Sm100aSkinnyGroupOverlap, NothingIsReadOrWrittenBeforeTheGridBeforeHasEnded) {
  Problem p = swizzled({.m = 5, .n = 70, .k = 320, .l = 2, .grouping = Grouping::kMasked});
  p.bias = BiasType::kF32;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {5, 2});
  const SkinnyRun run{};
  const Waits waits("dual_gemm_sm100a_skinny_groups", instance_of(p, run).entry);
  expect_reported_without_wait(data, run, waits,
                               {{"ld.global.v4", "the table of tiles"},
                                {"cp.async.bulk.tensor.3d", "loads of operands"},
                                {"st.global", "D"}},
                               3);
}

}  // namespace
}  // namespace dualgemm::test
