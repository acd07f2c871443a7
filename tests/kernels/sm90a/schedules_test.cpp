// The same bits in every schedule, and the sanitizer has nothing to say. Rings that go around
// several times, tiles that several CTAs share, through memory or in clusters of two.
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm90a/simulated_run.hpp"

namespace dualgemm::test {
namespace {

enum class Sharing { kMemory, kPairs };

void expect_same_in_every_schedule(int tile_m, int tile_n, int k_warpgroups,
                                   Sharing sharing = Sharing::kMemory, bool prepared = false) {
  Problem p{.m = tile_m + 1, .n = 100, .k = 256 * 15 - 64, .d = {.type = DataType::kF32}};
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  const int64_t tiles = 2 * ((p.n + tile_n - 1) / tile_n);
  const bool pairs = sharing == Sharing::kPairs;
  const SimulatedRun fixed{.tile_m = tile_m,
                           .tile_n = tile_n,
                           .k_warpgroups = k_warpgroups,
                           .max_ctas = pairs ? static_cast<int>(2 * tiles) : 3,
                           .prepared = prepared};
  // Seeds of the random and of the lazy schedule. A run of the widest tile takes four times as
  // long, and has a quarter of the warpgroups that could come in another order.
  const uint64_t seeds = tile_m < 128 ? 6 : 3;
  expect_same_bits_in_schedules(data, fixed, seeds, reference::Accumulation::kAnyOrder,
                                [pairs](const SimulatedRun& run) {
                                  EXPECT_EQ(run.shares_tiles, !pairs);
                                  EXPECT_EQ(run.pairs_ctas, pairs);
                                });
}

TEST(Sm90aSchedules, FourPhases) { expect_same_in_every_schedule(8, 32, 4); }
TEST(Sm90aSchedules, ThreePhases) { expect_same_in_every_schedule(32, 32, 3); }
TEST(Sm90aSchedules, TwoPhases) { expect_same_in_every_schedule(32, 64, 2); }
TEST(Sm90aSchedules, WideTile) { expect_same_in_every_schedule(128, 64, 1); }
TEST(Sm90aSchedules, PairsWithPhases) { expect_same_in_every_schedule(32, 64, 2, Sharing::kPairs); }
TEST(Sm90aSchedules, PreparedInFourPhases) {
  expect_same_in_every_schedule(8, 32, 4, Sharing::kMemory, true);
}
TEST(Sm90aSchedules, PreparedInPairs) {
  expect_same_in_every_schedule(128, 64, 1, Sharing::kPairs, true);
}
TEST(Sm90aSchedules, PairsWithWideTile) {
  expect_same_in_every_schedule(128, 64, 1, Sharing::kPairs);
}

}  // namespace
}  // namespace dualgemm::test
