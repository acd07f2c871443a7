// Mutants of the kernel of a pair.
#include "kernels/simulation/campaign.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"

namespace dualgemm::test {
namespace {

// The pipeline goes around more than twice, so that every barrier is waited for; M and N end inside
// a tile.
Problem campaign_problem(int tile_n, int stages) {
  return swizzled({.m = 150,
                   .n = tile_n == 64 ? 70 : 130,
                   .k = 256 * (2 * stages + 1) + 64,
                   .d = {.type = DataType::kF32}});
}

void campaign(int tile_n, bool prepared, uint64_t most) {
  const auto& instance = *cuda::sm100a_pair::find_instance(tile_n, DataType::kF32, prepared);
  // strict: what the campaign takes for noticed must not be there without it.
  CampaignRunner runner(
      campaign_problem(tile_n, instance.stages),
      SimulatedRun{.options = {.strict = true}, .tile_n = tile_n, .prepared = prepared});
  run_campaign(fused_program(tile_n, DataType::kF32, prepared), runner, most, most / 2);
}

TEST(Sm100aPairMutants, NarrowTile) { campaign(64, false, 24); }
TEST(Sm100aPairMutants, WideTile) { campaign(128, false, 12); }
TEST(Sm100aPairMutants, PreparedNarrowTile) { campaign(48, true, 16); }
TEST(Sm100aPairMutants, PreparedWideTile) { campaign(112, true, 12); }

}  // namespace
}  // namespace dualgemm::test
