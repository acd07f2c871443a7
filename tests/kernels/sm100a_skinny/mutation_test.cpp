// Mutants of the kernel for few rows.
#include "kernels/simulation/campaign.hpp"
#include "kernels/sm100a_skinny/simulated_run.hpp"

namespace dualgemm::test {
namespace {

// The ring goes around more than twice, so that every barrier is waited for; M and N end inside a
// tile, and a warp of the epilogue has rows twice.
void campaign(int64_t m, int tile_n, DataType output, uint64_t most) {
  Problem problem = swizzled({.m = m, .n = tile_n + 16, .d = {.type = output}});
  problem.d.scale_layout = ScaleLayout::kSwizzled128x4;
  const auto& instance = instance_of(problem, {.tile_n = tile_n});
  problem.k = 256 * (2 * instance.stages + 1) + 64;
  CampaignRunner runner(problem, SkinnyRun{.tile_n = tile_n});
  run_campaign(program_of({"dual_gemm_sm100a_skinny", instance.entry, instance.kernel}), runner,
               most, most / 4);
}

TEST(Sm100aSkinnyMutants, WideTile) { campaign(28, 64, DataType::kF32, 48); }
TEST(Sm100aSkinnyMutants, NarrowTile) { campaign(124, 32, DataType::kE2M1, 24); }

// Weights that are loaded before the grid before has ended, and arranged.
void prepared_campaign(int64_t m, int tile_n, uint64_t most) {
  Problem problem = swizzled({.m = m, .n = tile_n + 16, .d = {.type = DataType::kF32}});
  const SkinnyRun run{.tile_n = tile_n, .prepared = true};
  const auto& instance = instance_of(problem, run);
  problem.k = 256 * (2 * instance.stages + 1) + 64;
  CampaignRunner runner(problem, run);
  run_campaign(program_of({"dual_gemm_sm100a_skinny_prepared", instance.entry, instance.kernel}),
               runner, most, most / 4);
}

TEST(Sm100aSkinnyMutants, PreparedWideTile) { prepared_campaign(28, 64, 36); }
TEST(Sm100aSkinnyMutants, PreparedNarrowTile) { prepared_campaign(31, 32, 24); }

// A CTA has nine tiles of 320 along k: the ring and both accumulators go around more than twice.
// Rows of some tiles have their scales of A in two tiles of 128, Gate's lie in rows.
void groups_campaign(bool prepared, uint64_t most) {
  Problem problem{.m = 150, .n = 150, .k = 320, .l = 5, .grouping = Grouping::kContiguous};
  problem.up.scale_layout = ScaleLayout::kSwizzled128x4;
  problem.gate.scale_ld = 32;
  problem.d.type = DataType::kF32;
  const SkinnyRun run{.tile_m = 32, .max_ctas = 2, .prepared = prepared};
  CampaignRunner runner(problem, run, {0, 1, 1, 60, 120, 150});
  const auto& instance = instance_of(problem, run);
  run_campaign(program_of({"dual_gemm_sm100a_skinny_groups", instance.entry, instance.kernel}),
               runner, most, most / 4);
}

TEST(Sm100aSkinnyMutants, Groups) { groups_campaign(false, 72); }
TEST(Sm100aSkinnyMutants, PreparedGroups) { groups_campaign(true, 48); }

// The same kernels without groups, and so without a table: what reads it is not executed.
void persistent_campaign(bool prepared, uint64_t most) {
  Problem problem{.m = 28, .n = 1100, .k = 320, .d = {.type = DataType::kF32}};
  problem.up.scale_layout = problem.a.scale_layout = ScaleLayout::kSwizzled128x4;
  problem.gate.scale_ld = 32;
  const SkinnyRun run{.tile_m = 32, .persistent = true, .max_ctas = 2, .prepared = prepared};
  CampaignRunner runner(problem, run);
  const auto& instance = instance_of(problem, run);
  run_campaign(program_of({"dual_gemm_sm100a_skinny_groups", instance.entry, instance.kernel}),
               runner, most, most / 4);
}

TEST(Sm100aSkinnyMutants, Persistent) { persistent_campaign(false, 24); }
TEST(Sm100aSkinnyMutants, PersistentPrepared) { persistent_campaign(true, 32); }

}  // namespace
}  // namespace dualgemm::test
