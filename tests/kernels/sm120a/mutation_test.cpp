// Mutants of the sm_120a kernel.
#include "kernels/simulation/campaign.hpp"
#include "kernels/sm120a/simulated_run.hpp"

namespace dualgemm::test {
namespace {

// A ring that goes around more than twice; m, n and k end inside a tile and a stage.
void campaign(Problem problem, const SimulatedRun& run, uint64_t most,
              const std::vector<int32_t>& experts = {}) {
  CampaignRunner runner(problem, run, experts);
  const auto& instance = instance_of(problem, run);
  run_campaign(program_of({"dual_gemm_sm120a", instance.entry, instance.kernel}), runner, most,
               most / 4);
}

Problem campaign_problem(int64_t m, int64_t stages, DataType output) {
  Problem p = swizzled({.m = m, .n = 80, .k = 128 * (2 * stages + 1) - 32, .d = {.type = output}});
  p.d.scale_layout = ScaleLayout::kSwizzled128x4;
  p.up.scale_layout = ScaleLayout::kLinear;
  return p;
}

TEST(Sm120aMutants, FewRows) {
  campaign(campaign_problem(15, 3, DataType::kF32), {.tile_m = 16, .stages = 3}, 48);
}
TEST(Sm120aMutants, ManyRows) {
  campaign(campaign_problem(140, 2, DataType::kE2M1), {.tile_m = 128, .stages = 2}, 32);
}
TEST(Sm120aMutants, Prepared) {
  campaign(campaign_problem(31, 4, DataType::kF16), {.tile_m = 32, .stages = 4, .prepared = true},
           32);
}
// Codes are copied by cp.async, scales byte by byte.
TEST(Sm120aMutants, AnyAlignment) {
  Problem problem = campaign_problem(7, 2, DataType::kF32);
  problem.up.scale_ld = problem.k / 16 + 3;
  campaign(problem, {.tile_m = 8, .stages = 2}, 32);
}

// A CTA has several tiles: what they leave in shared memory meets.
TEST(Sm120aMutants, Groups) {
  Problem problem{.m = 100, .n = 80, .k = 320, .l = 4, .grouping = Grouping::kContiguous};
  problem.d.type = DataType::kF32;
  campaign(problem, {.tile_m = 16, .stages = 2}, 48, {0, 1, 1, 60, 100});
}

}  // namespace
}  // namespace dualgemm::test
