// Mutants of the kernel for 16-bit A.
#include "kernels/simulation/campaign.hpp"
#include "kernels/sm100a_w4a16/simulated_run.hpp"

namespace dualgemm::test {
namespace {

// Rings go around more than twice, so that every barrier is waited for; M and N end inside a tile.
void campaign(int64_t m, DataType type, DataType output, const W4a16Run& run, uint64_t most) {
  Problem problem = with_rows({.m = m, .n = 80, .d = {.type = output}}, type);
  problem.d.scale_layout = ScaleLayout::kSwizzled128x4;
  const auto& instance = instance_of(problem, {});
  problem.k = 256 * run.split * (2 * instance.stages + 1) + 64;
  CampaignRunner runner(problem, run);
  run_campaign(program_of({"dual_gemm_sm100a_w4a16", instance.entry, instance.kernel}), runner,
               most, most / 4);
}

TEST(Sm100aW4a16Mutants, OneCta) { campaign(28, DataType::kF16, DataType::kE2M1, {}, 20); }
TEST(Sm100aW4a16Mutants, Cluster) {
  campaign(60, DataType::kBF16, DataType::kF32, {.split = 3}, 28);
}
TEST(Sm100aW4a16Mutants, Prepared) {
  campaign(28, DataType::kF16, DataType::kF32, {.split = 2, .prepared = true}, 20);
}

// CTAs have eight and seven tiles of four steps along k: rings and both accumulators go around more
// than twice, and end anywhere in them: a warp that waits for the next slot instead waits for ever.
void groups_campaign(DataType type, bool prepared, uint64_t most) {
  Problem problem{.m = 124, .n = 150, .k = 832, .l = 5, .grouping = Grouping::kContiguous};
  problem.a.type = type;
  problem.up.scale_layout = ScaleLayout::kSwizzled128x4;
  problem.gate.scale_ld = 64;
  problem.d.type = DataType::kF32;
  const W4a16Run run{.tile_m = 32, .max_ctas = 2, .prepared = prepared};
  CampaignRunner runner(problem, run, {0, 1, 1, 60, 92, 124});
  const auto& instance = instance_of(problem, run);
  run_campaign(program_of({"dual_gemm_sm100a_w4a16_groups", instance.entry, instance.kernel}),
               runner, most, most / 4);
}

TEST(Sm100aW4a16Mutants, Groups) { groups_campaign(DataType::kF16, false, 36); }
TEST(Sm100aW4a16Mutants, PreparedGroups) { groups_campaign(DataType::kBF16, true, 24); }

// The same kernels without groups, and so without a table: what reads it is not executed. CTAs have
// seven and six tiles of 64 columns.
void persistent_campaign(DataType type, bool prepared, uint64_t most) {
  Problem problem{.m = 28, .n = 820, .k = 832, .d = {.type = DataType::kF32}};
  problem.a.type = type;
  problem.up.scale_layout = ScaleLayout::kSwizzled128x4;
  problem.gate.scale_ld = 64;
  const W4a16Run run{.tile_m = 32, .persistent = true, .max_ctas = 2, .prepared = prepared};
  CampaignRunner runner(problem, run);
  const auto& instance = instance_of(problem, run);
  run_campaign(program_of({"dual_gemm_sm100a_w4a16_groups", instance.entry, instance.kernel}),
               runner, most, most / 4);
}

TEST(Sm100aW4a16Mutants, Persistent) { persistent_campaign(DataType::kBF16, false, 24); }
TEST(Sm100aW4a16Mutants, PersistentPrepared) { persistent_campaign(DataType::kF16, true, 24); }

}  // namespace
}  // namespace dualgemm::test
