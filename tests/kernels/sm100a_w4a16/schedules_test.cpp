// The same bits in every schedule: asynchronous operations complete at once, as late as they may,
// or at random, and the sanitizer has nothing to say. Rings that go around several times, one CTA
// for all of k and several, a copy before the kernel.
#include "kernels/sm100a_w4a16/simulated_run.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

using ptxsim::Schedule;

constexpr uint64_t kSeeds = 12;  // of the random and of the lazy schedule

void expect_same_in_every_schedule(int64_t m, DataType type, int64_t k, int split) {
  Problem p{.m = m, .n = 66, .k = k, .a = {.type = type}, .d = {.type = DataType::kF32}};
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;  // Up stays linear: one copy
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  W4a16Run eager{.split = split};
  ASSERT_TRUE(simulate(data, eager));
  ASSERT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
  EXPECT_EQ(eager.launches, 2u);
  const std::vector<uint8_t> bits(data.d.data.begin(), data.d.data.end());
  for (const Schedule schedule : {Schedule::kLazy, Schedule::kRandom}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      W4a16Run run{.split = split};
      run.options.schedule = schedule;
      run.options.seed = seed;
      data.poison_d();
      ASSERT_TRUE(simulate(data, run));
      ASSERT_TRUE(std::equal(bits.begin(), bits.end(), data.d.data.begin()))
          << describe(run.options);
    }
  }
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
