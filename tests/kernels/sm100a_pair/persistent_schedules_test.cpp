// The same bits of persistent pairs in every schedule, without a word of the sanitizer: stages, TMEM
// and barriers that go on from tile to tile, pairs that have a tile more than others.
#include "kernels/sm100a_pair/simulated_run.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

using ptxsim::Schedule;

// `tiles` of D for two pairs.
void expect_same_in_every_turn(int64_t tiles, int64_t k, bool prepared, uint64_t seeds) {
  Problem p{.m = 150, .n = 128 * tiles - 50, .k = k, .d = {.type = DataType::kF32}};
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;  // Up stays linear: one copy
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  const SimulatedRun usual{.prepared = prepared, .persistent_ctas = 4};
  SimulatedRun eager = usual;
  ASSERT_TRUE(simulate(data, eager));
  ASSERT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
  const std::vector<uint8_t> bits(data.d.data.begin(), data.d.data.end());
  for (const Schedule schedule : {Schedule::kLazy, Schedule::kRandom}) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      SimulatedRun run = usual;
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
