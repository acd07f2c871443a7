// The same bits of persistent pairs in every schedule, without a word of the sanitizer: stages,
// TMEM and barriers that go on from tile to tile, pairs that have a tile more than others.
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"

namespace dualgemm::test {
namespace {

// `tiles` of D for two pairs.
void expect_same_in_every_turn(int64_t tiles, int64_t k, bool prepared, uint64_t seeds) {
  Problem p{.m = 150, .n = 128 * tiles - 50, .k = k, .d = {.type = DataType::kF32}};
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;  // Up stays linear: one copy
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  const SimulatedRun usual{.prepared = prepared, .persistent_ctas = 4};
  expect_same_bits_in_schedules(
      data, usual, seeds, reference::Accumulation::kTensorCoreStep, [](const SimulatedRun& run) {
        ASSERT_TRUE(run.result.reports.list.empty())  // no warning or advisory either
            << ptxsim::to_string(run.result.reports.list.front());
      });
}

TEST(Sm100aPairPersistentSchedules, Unpacked) {
  expect_same_in_every_turn(5, 256 * 7 - 128, false, 10);
}
TEST(Sm100aPairPersistentSchedules, Prepared) {
  expect_same_in_every_turn(5, 256 * 7 - 64, true, 10);
}
// Several tiles in the ring at a time.
TEST(Sm100aPairPersistentSchedules, OneStageATile) {
  for (const bool prepared : {false, true}) expect_same_in_every_turn(9, 192, prepared, 6);
}

}  // namespace
}  // namespace dualgemm::test
