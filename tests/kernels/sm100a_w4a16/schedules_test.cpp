// The same bits in every schedule, and the sanitizer has nothing to say. Rings that go around
// several times, one CTA for all of k and several, a copy before the kernel.
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm100a_w4a16/simulated_run.hpp"

namespace dualgemm::test {
namespace {

constexpr uint64_t kSeeds = 12;  // of the random and of the lazy schedule

void expect_same_in_every_schedule(int64_t m, DataType type, int64_t k, int split) {
  Problem p{.m = m, .n = 66, .k = k, .a = {.type = type}, .d = {.type = DataType::kF32}};
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;  // Up stays linear: one copy
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  expect_same_bits_in_schedules(data, W4a16Run{.split = split}, kSeeds,
                                reference::Accumulation::kAnyOrder,
                                [](const W4a16Run& run) { EXPECT_EQ(run.launches, 2u); });
}

TEST(Sm100aW4a16Schedules, OneRow) {
  expect_same_in_every_schedule(1, DataType::kBF16, 256 * 11 - 64, 1);
}
TEST(Sm100aW4a16Schedules, CtasThatShareK) {
  expect_same_in_every_schedule(20, DataType::kF16, 256 * 9 - 64, 2);
}
TEST(Sm100aW4a16Schedules, FewerTilesOfKThanStages) {
  expect_same_in_every_schedule(40, DataType::kBF16, 192, 1);
}

}  // namespace
}  // namespace dualgemm::test
