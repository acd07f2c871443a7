// Mutants of the kernel of one CTA.
#include "kernels/simulation/campaign.hpp"
#include "kernels/sm100a/simulated_run.hpp"

namespace dualgemm::test {
namespace {

// The pipeline goes around more than twice, so that every barrier is waited for; M and N end inside
// a tile.
Problem campaign_problem(int tile_n) {
  return swizzled({.m = 129,
                   .n = tile_n == 64 ? 70 : 130,
                   .k = 256 * (tile_n == 64 ? 11 : 9) + 64,
                   .d = {.type = DataType::kF32}});
}

// Compared with what the unchanged kernel leaves under the same schedule and seed, as `ptxsim
// mutate` does with a case that expects no results.
class RunnerWithoutExpected : public CampaignRunner<SimulatedRun> {
 public:
  using CampaignRunner::CampaignRunner;
  ptxsim::Trial operator()(std::shared_ptr<const ptxsim::Program> program,
                           const ptxsim::Options& options) {
    SimulatedRun run = mutated(std::move(program), options);
    const bool ran = static_cast<bool>(run_on(run));
    const auto* first = reinterpret_cast<const std::byte*>(data().d.data.data());
    ptxsim::Outputs outputs{{{"d", {first, first + data().d.data.size()}, {}, true}}};
    return {ran, std::move(run.result), std::move(outputs)};
  }
};

template <class Runner>
void campaign(int tile_n, uint64_t most) {
  Runner runner(campaign_problem(tile_n), SimulatedRun{.tile_n = tile_n});
  run_campaign(fused_program(tile_n, DataType::kF32), runner, most, most / 2);
}

TEST(Sm100aMutants, NarrowTile) { campaign<CampaignRunner<SimulatedRun>>(64, 64); }
TEST(Sm100aMutants, WideTile) { campaign<CampaignRunner<SimulatedRun>>(128, 32); }
TEST(Sm100aMutants, NarrowTileWithoutExpectedResults) { campaign<RunnerWithoutExpected>(64, 24); }

}  // namespace
}  // namespace dualgemm::test
