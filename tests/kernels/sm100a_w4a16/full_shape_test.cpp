// Whole benchmark shapes with few rows of bf16: all clusters, 28 tiles of k. Minutes, so they run
// only when asked for: scripts/simulate_full_shape.
#include "kernels/sm100a_w4a16/simulated_run.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

void expect_whole_shape_right(int64_t m) {
  const Problem p = with_rows({.m = m, .n = 4096, .k = 7168}, DataType::kBF16);
  Rng rng;
  RandomCase data(p, rng, Values::kChallenge);
  // Products of a deviation of about 2: activations bend, fp16 does not overflow.
  data.alpha_gate = data.alpha_up = 1.0f / 16;
  W4a16Run run{.split = cuda::sm100a_w4a16::choose_split(p, instance_of(p, {}), 148)};
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
  std::printf(
      "%llu warp-instructions, %llu MMAs, %.3f GB loaded by TMA, %llu of %llu waits blocked\n",
      static_cast<unsigned long long>(run.stats.warp_instructions),
      static_cast<unsigned long long>(run.stats.mma_instructions),
      static_cast<double>(run.stats.tma_load_bytes) * 1e-9,
      static_cast<unsigned long long>(run.stats.barrier_waits_blocked),
      static_cast<unsigned long long>(run.stats.barrier_waits));
}

TEST(Sm100aW4a16FullShape, DISABLED_M1N4096K7168) { expect_whole_shape_right(1); }
TEST(Sm100aW4a16FullShape, DISABLED_M64N4096K7168) { expect_whole_shape_right(64); }

}  // namespace
}  // namespace dualgemm::test
