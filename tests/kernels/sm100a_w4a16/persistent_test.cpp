// Many columns without groups: kernels/simulation/persistent_tiles.hpp.
#include "kernels/simulation/persistent_tiles.hpp"
#include "kernels/sm100a_w4a16/simulated_run.hpp"

namespace dualgemm::test {
namespace {

// More rows than a tile has are several tiles.
const PersistentTiles kKernel{
    {DataType::kBF16, DataType::kF16}, {32, 64}, 150, reference::Accumulation::kAnyOrder};

TEST(Sm100aW4a16Persistent, EveryShape) { expect_every_shape<W4a16Run>(kKernel); }
TEST(Sm100aW4a16Persistent, StridesAndMisalignment) {
  expect_strides_and_misalignment<W4a16Run>(kKernel);
}
TEST(Sm100aW4a16Persistent, EveryActivationAndOutput) {
  expect_every_activation_and_output<W4a16Run>(kKernel);
}
TEST(Sm100aW4a16Persistent, Nvfp4IsTheWideOutputQuantized) {
  expect_nvfp4_output<W4a16Run>(kKernel);
}
TEST(Sm100aW4a16Persistent, TheSameInEverySchedule) {
  expect_same_tiles_in_every_schedule<W4a16Run>(kKernel, 10);
}
TEST(Sm100aW4a16Persistent, EveryWaitButTheTablesIsNeeded) {
  expect_every_wait_but_the_tables_is_needed<W4a16Run>(kKernel, "dual_gemm_sm100a_w4a16_groups");
}

// Each tile's operands once, scales where they lie: one launch, and no workspace.
TEST(Sm100aW4a16Persistent, LinearScalesAreReadInPlace) {
  Problem p{.m = 40, .n = 200, .k = 512, .a = {.type = DataType::kF16}};
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  W4a16Run run{.persistent = true};
  ASSERT_TRUE(simulate(data, run));
  EXPECT_EQ(run.launches, 1u);
  constexpr uint64_t kTiles = 4, kStages = 2, kStageBytes = 128 * (128 + 16) + 64 * 512;
  EXPECT_EQ(run.stats.tma_load_bytes, kTiles * kStages * kStageBytes);
}

}  // namespace
}  // namespace dualgemm::test
