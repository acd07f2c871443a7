// Many columns without groups: kernels/simulation/persistent_tiles.hpp.
#include "kernels/simulation/persistent_tiles.hpp"
#include "kernels/sm100a_skinny/simulated_run.hpp"

namespace dualgemm::test {
namespace {

const PersistentTiles kKernel{
    {DataType::kE2M1}, {16, 32, 64, 128}, 128, reference::Accumulation::kTensorCoreStep};

TEST(Sm100aSkinnyPersistent, EveryShape) { expect_every_shape<SkinnyRun>(kKernel); }
TEST(Sm100aSkinnyPersistent, StridesAndMisalignment) {
  expect_strides_and_misalignment<SkinnyRun>(kKernel);
}
TEST(Sm100aSkinnyPersistent, EveryActivationAndOutput) {
  expect_every_activation_and_output<SkinnyRun>(kKernel);
}
TEST(Sm100aSkinnyPersistent, Nvfp4IsTheWideOutputQuantized) {
  expect_nvfp4_output<SkinnyRun>(kKernel);
}
TEST(Sm100aSkinnyPersistent, TheSameInEverySchedule) {
  expect_same_tiles_in_every_schedule<SkinnyRun>(kKernel, 10);
}
TEST(Sm100aSkinnyPersistent, EveryWaitButTheTablesIsNeeded) {
  expect_every_wait_but_the_tables_is_needed<SkinnyRun>(kKernel, "dual_gemm_sm100a_skinny_groups");
}

// Each tile's operands once, scales where they lie: one launch, and no workspace.
TEST(Sm100aSkinnyPersistent, LinearScalesAreReadInPlace) {
  Problem p{.m = 40, .n = 200, .k = 512};
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  SkinnyRun run{.persistent = true};
  ASSERT_TRUE(simulate(data, run));
  EXPECT_EQ(run.launches, 1u);
  constexpr uint64_t kTiles = 4, kStages = 2, kStageBytes = (128 + 64) * (128 + 16);
  EXPECT_EQ(run.stats.tma_load_bytes, kTiles * kStages * kStageBytes);
}

}  // namespace
}  // namespace dualgemm::test
