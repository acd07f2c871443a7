// Mutants of the kernel of a pair.
#include "core/int_math.hpp"
#include "kernels/simulation/campaign.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"

namespace dualgemm::test {
namespace {

// The pipeline goes around more than twice, so that every barrier is waited for; M and N end inside
// a tile. Persistent: more tiles of fewer stages, of which the last has all steps.
Problem campaign_problem(int tile_n, int stages, bool persistent) {
  if (persistent)
    return swizzled({.m = 150, .n = 450, .k = 256 * 4 - 48, .d = {.type = DataType::kF32}});
  return swizzled({.m = 150,
                   .n = tile_n == 64 ? 70 : 130,
                   .k = 256 * (2 * stages + 1) + 64,
                   .d = {.type = DataType::kF32}});
}

// linear_a: scales of A in rows that are read where they lie.
void campaign(SimulatedRun usual, uint64_t most, bool linear_a = false) {
  const bool persistent = usual.persistent_ctas != 0;
  const auto& instance =
      *cuda::sm100a_pair::find_instance(usual.tile_n, DataType::kF32, usual.prepared, persistent);
  Problem problem = campaign_problem(usual.tile_n, instance.stages, persistent);
  if (linear_a) {
    problem.a.scale_layout = ScaleLayout::kLinear;
    problem.a.scale_ld = core::round_up(problem.k / 16, 16);
  }
  const auto program = fused_program(usual.tile_n, DataType::kF32, usual.prepared, persistent);
  usual.options.strict = true;  // what the campaign takes for noticed must not be there without it
  CampaignRunner runner(problem, std::move(usual));
  run_campaign(program, runner, most, most / 2);
}

TEST(Sm100aPairMutants, NarrowTile) { campaign({.tile_n = 64}, 24); }
TEST(Sm100aPairMutants, WideTile) { campaign({.tile_n = 128}, 12); }
TEST(Sm100aPairMutants, PreparedNarrowTile) { campaign({.tile_n = 48, .prepared = true}, 16); }
TEST(Sm100aPairMutants, PreparedWideTile) { campaign({.tile_n = 112, .prepared = true}, 12); }
// One pair, four tiles.
TEST(Sm100aPairMutants, Persistent) { campaign({.persistent_ctas = 2}, 16); }
TEST(Sm100aPairMutants, PersistentPrepared) {
  campaign({.prepared = true, .persistent_ctas = 2}, 16);
}

TEST(Sm100aPairMutants, PreparedScalesOfAInRows) {
  campaign({.tile_n = 48, .prepared = true}, 12, true);
}
TEST(Sm100aPairMutants, PersistentPreparedScalesOfAInRows) {
  campaign({.prepared = true, .persistent_ctas = 2}, 12, true);
}

}  // namespace
}  // namespace dualgemm::test
