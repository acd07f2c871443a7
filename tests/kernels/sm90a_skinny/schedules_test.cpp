// The same bits in every schedule.
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm90a_skinny/simulated_run.hpp"

namespace dualgemm::test {
namespace {

void expect_same_in_every_schedule(int64_t m, bool prepared) {
  for (const int64_t cols : {8, 32}) {
    const Problem p{.m = m, .n = 5 * cols + 3, .k = 256 * 19 - 64, .d = {.type = DataType::kF32}};
    Rng rng;
    RandomCase data(p, rng, Values::kWide);
    const SimulatedRun run{.cols = cols, .max_ctas = 2, .prepared = prepared};
    expect_same_bits_in_schedules(data, run, 4, reference::Accumulation::kAnyOrder);
  }
}

TEST(Sm90aSkinnySchedules, TheSameBitsInAllOfThem) { expect_same_in_every_schedule(7, false); }
TEST(Sm90aSkinnySchedules, TheSameBitsOfPreparedWeights) { expect_same_in_every_schedule(7, true); }
TEST(Sm90aSkinnySchedules, TheSameBitsOfSixteenRows) { expect_same_in_every_schedule(15, true); }

}  // namespace
}  // namespace dualgemm::test
