// Mutants of groups of experts on pairs of CTAs.
#include "kernels/simulation/campaign.hpp"
#include "kernels/sm100a_pair_groups/simulated_run.hpp"

namespace dualgemm::test {
namespace {

// One pair has 12 tiles of three stages, the last of which has a little of its last step: the ring
// goes around more than twice. Rows of D end in either CTA. Gate's scales are read in rows, Up's in
// tiles. Those of A, `ld_of_a` of them a row: in rows, or, copied, in tiles in which experts begin
// anywhere.
void campaign(bool prepared, int64_t ld_of_a, uint64_t most) {
  Problem problem{.m = 420, .n = 300, .k = 720, .l = 4, .grouping = Grouping::kContiguous};
  problem.up.scale_layout = ScaleLayout::kSwizzled128x4;
  problem.gate.scale_ld = 48;
  problem.gate.scale_batch_stride = problem.n * problem.gate.scale_ld;
  problem.a.scale_ld = ld_of_a;
  problem.d.type = DataType::kF32;
  CampaignRunner runner(problem, PairGroupsRun{.max_ctas = 2, .prepared = prepared},
                        {0, 0, 150, 151, 420});
  const auto& instance = cuda::sm100a_pair_groups::instance_for(DataType::kF32);
  run_campaign(program_of({"dual_gemm_sm100a_pair_groups", instance.entry, instance.kernel}),
               runner, most, most / 2);
}

TEST(Sm100aPairGroupMutants, ScalesOfAInRows) { campaign(false, 64, 24); }
TEST(Sm100aPairGroupMutants, ScalesOfAAnywhereInTiles) { campaign(true, 46, 24); }

}  // namespace
}  // namespace dualgemm::test
