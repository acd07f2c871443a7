// Whole benchmark shapes with few rows: all CTAs, 28 tiles of k. Minutes, so they run only when
// asked for: scripts/simulate_full_shape.
#include "kernels/sm100a_skinny/simulated_run.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

void expect_whole_shape_right(const Problem& p, bool prepared = false) {
  Rng rng;
  RandomCase data(p, rng, Values::kChallenge);
  // Products of a deviation of about 2: activations bend, fp16 does not overflow.
  data.alpha_gate = data.alpha_up = 1.0f / 16;
  const auto& config = cuda::sm100a_skinny::choose_instance(p, 148, prepared).config;
  SkinnyRun run{
      .tile_n = config.tile_n, .tile_m = config.tile_m, .max_ctas = 148, .prepared = prepared};
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

TEST(Sm100aSkinnyFullShape, DISABLED_M1N4096K7168) {
  expect_whole_shape_right(swizzled({.m = 1, .n = 4096, .k = 7168}));
}
TEST(Sm100aSkinnyFullShape, DISABLED_M1N4096K7168Prepared) {
  expect_whole_shape_right(swizzled({.m = 1, .n = 4096, .k = 7168}), true);
}
TEST(Sm100aSkinnyFullShape, DISABLED_M64N4096K7168) {
  expect_whole_shape_right(swizzled({.m = 64, .n = 4096, .k = 7168}));
}
TEST(Sm100aSkinnyFullShape, DISABLED_FourExpertsN2048K7168) {
  for (const bool prepared : {false, true}) {
    expect_whole_shape_right(
        swizzled({.m = 100, .n = 2048, .k = 7168, .l = 4, .grouping = Grouping::kContiguous}),
        prepared);
  }
}

}  // namespace
}  // namespace dualgemm::test
