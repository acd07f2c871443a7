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

}  // namespace
}  // namespace dualgemm::test
