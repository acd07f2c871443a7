// A whole benchmark shape of the challenge: 128 CTAs of 28 tiles of k. Minutes, so it runs only
// when asked for: scripts/simulate_full_shape.
#include <ctime>

#include "kernels/sm100a/simulated_run.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm100aFullShape, DISABLED_M256N4096K7168) {
  const Problem p = swizzled({.m = 256, .n = 4096, .k = 7168});
  Rng rng;
  RandomCase data(p, rng, Values::kChallenge);
  // Products of a deviation of about 2: activations bend, fp16 does not overflow.
  data.alpha_gate = data.alpha_up = 1.0f / 16;
  SimulatedRun run{.tile_n = cuda::sm100a::choose_instance(p, 148).config.tile_n};
  const std::clock_t begin = std::clock();
  ASSERT_TRUE(simulate(data, run));
  std::printf("%.2f s of one core in the interpreter\n",
              static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
  std::printf(
      "%llu warp-instructions, %llu MMAs, %.3f GB loaded by TMA, %llu of %llu waits blocked\n",
      static_cast<unsigned long long>(run.stats.warp_instructions),
      static_cast<unsigned long long>(run.stats.mma_instructions),
      static_cast<double>(run.stats.tma_load_bytes) * 1e-9,
      static_cast<unsigned long long>(run.stats.barrier_waits_blocked),
      static_cast<unsigned long long>(run.stats.barrier_waits));
}

}  // namespace
}  // namespace dualgemm::test
