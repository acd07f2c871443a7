// A whole benchmark shape of the challenge: 64 pairs of CTAs, 28 tiles of k. Minutes, so it runs
// only when asked for: scripts/simulate_full_shape.
#include "kernels/sm100a_pair/simulated_run.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

void run_whole(const Problem& p, int tile_n, bool prepared) {
  Rng rng;
  RandomCase data(p, rng, Values::kChallenge);
  // Products of a deviation of about 2: activations bend, fp16 does not overflow.
  data.alpha_gate = data.alpha_up = 1.0f / 16;
  SimulatedRun run{.tile_n = tile_n, .prepared = prepared};
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
  std::printf(
      "%llu warp-instructions, %llu MMAs, %.3f GB loaded by TMA, %llu of %llu waits blocked\n",
      static_cast<unsigned long long>(run.stats.warp_instructions),
      static_cast<unsigned long long>(run.stats.mma_instructions),
      static_cast<double>(run.stats.tma_load_bytes) * 1e-9,
      static_cast<unsigned long long>(run.stats.barrier_waits_blocked),
      static_cast<unsigned long long>(run.stats.barrier_waits));
}

TEST(Sm100aPairFullShape, DISABLED_M256N4096K7168) {
  run_whole(swizzled({.m = 256, .n = 4096, .k = 7168}), 64, false);
}
TEST(Sm100aPairFullShape, DISABLED_PreparedM512N4096K7168) {
  run_whole(swizzled({.m = 512, .n = 4096, .k = 7168}), 112, true);
}
TEST(Sm100aPairFullShape, DISABLED_PreparedM256N3072K4096) {
  run_whole(swizzled({.m = 256, .n = 3072, .k = 4096}), 48, true);
}

}  // namespace
}  // namespace dualgemm::test
