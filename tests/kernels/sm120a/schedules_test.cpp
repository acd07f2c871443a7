// The same bits in every schedule, and the sanitizer has nothing to say. Rings that go around
// several times, several CTAs, every way that operands are copied.
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm120a/simulated_run.hpp"

namespace dualgemm::test {
namespace {

constexpr uint64_t kSeeds = 8;  // of the random and of the lazy schedule

void expect_same_in_every_schedule(const SimulatedRun& run, int64_t m, int64_t k) {
  Problem p{.m = m, .n = 66, .k = k, .d = {.type = DataType::kF32}};
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;  // Up stays linear
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  SimulatedRun strict = run;
  strict.options.strict = true;
  expect_same_bits_in_schedules(data, strict, kSeeds, reference::Accumulation::kTensorCoreStep);
}

TEST(Sm120aSchedules, FewRows) {
  for (const int stages : {2, 4, 8})
    expect_same_in_every_schedule({.tile_m = 8, .stages = stages}, 8, 128 * 11 - 32);
}
TEST(Sm120aSchedules, ManyRows) {
  expect_same_in_every_schedule({.tile_m = 128, .stages = 2}, 130, 128 * 7 - 64);
}
TEST(Sm120aSchedules, ManyMoreRows) {
  expect_same_in_every_schedule({.tile_m = 256, .stages = 3}, 130, 128 * 5 - 64);
}
TEST(Sm120aSchedules, EightBytesAtATime) {
  expect_same_in_every_schedule({.tile_m = 16, .stages = 4}, 12, 128 * 9 - 16);
}
TEST(Sm120aSchedules, AnyAlignment) {
  expect_same_in_every_schedule({.tile_m = 16, .stages = 3, .misalign = 1}, 12, 128 * 9 - 16);
}
TEST(Sm120aSchedules, Prepared) {
  expect_same_in_every_schedule({.tile_m = 32, .stages = 4, .prepared = true}, 31, 128 * 9 - 16);
}
TEST(Sm120aSchedules, FewerStagesOfKThanOfTheRing) {
  expect_same_in_every_schedule({.tile_m = 16, .stages = 8}, 12, 192);
}

}  // namespace
}  // namespace dualgemm::test
