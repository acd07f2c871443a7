// Tiles of groups in every schedule, and beside the grid before: as schedules_test.cpp and
// overlap_test.cpp have it.
#include "kernels/simulation/overlap.hpp"
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm100a_w4a16/simulated_run.hpp"
#include "support/grouped.hpp"

namespace dualgemm::test {
namespace {

constexpr uint64_t kSeedsOfGroups = 12;  // of the random and of the lazy schedule

// Several tiles for each of two CTAs, an expert without rows among them.
void expect_same_tiles_in_every_schedule(const W4a16Run& fixed, DataType type, int64_t m, int64_t k,
                                         DataType output) {
  Problem p{.m = m, .n = 80, .k = k, .l = 4, .a = {.type = type}, .d = {.type = output}};
  p.grouping = Grouping::kContiguous;
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;
  p.up.scale_ld = core::round_up(k / 16, 16);
  p.up.scale_batch_stride = p.n * p.up.scale_ld;  // read where they lie
  if (output == DataType::kE2M1) p.d.scale_layout = ScaleLayout::kSwizzled128x4;
  Rng rng;
  const auto rows = static_cast<int32_t>(m);
  RandomCase data(p, rng, Values::kWide, {0, rows / 2 + 1, rows / 2 + 1, rows - 3, rows});
  expect_same_bits_in_schedules(data, fixed, kSeedsOfGroups, reference::Accumulation::kAnyOrder,
                                [](const W4a16Run& run) { EXPECT_EQ(run.launches, 2u); });
}

TEST(Sm100aW4a16GroupSchedules, ShortTiles) {
  expect_same_tiles_in_every_schedule({.tile_m = 32, .max_ctas = 2}, DataType::kF16, 70,
                                      256 * 2 - 64, DataType::kF32);
}
TEST(Sm100aW4a16GroupSchedules, RingsGoAroundInATile) {
  expect_same_tiles_in_every_schedule({.tile_m = 32, .max_ctas = 2}, DataType::kBF16, 70, 256 * 7,
                                      DataType::kE2M1);
}
TEST(Sm100aW4a16GroupSchedules, ManyRowsPrepared) {
  expect_same_tiles_in_every_schedule({.tile_m = 64, .max_ctas = 2, .prepared = true},
                                      DataType::kBF16, 200, 320, DataType::kF32);
}

TEST(Sm100aW4a16GroupOverlap, NothingIsReadOrWrittenBeforeTheGridBeforeHasEnded) {
  Problem p{.m = 5, .n = 70, .k = 320, .l = 2, .grouping = Grouping::kMasked};
  p.a.type = DataType::kBF16;
  p.bias = BiasType::kF32;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {5, 2});
  const W4a16Run run{};
  const Waits waits("dual_gemm_sm100a_w4a16_groups", instance_of(p, run).entry);
  expect_reported_without_wait(data, run, waits,
                               {{"ld.global.v4", "the table of tiles"},
                                {"cp.async.bulk.tensor.3d", "loads of operands"},
                                {"st.global", "D"}},
                               3);
}

}  // namespace
}  // namespace dualgemm::test
