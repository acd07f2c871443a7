// Mutants of the kernel of a pair.
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

class CampaignRunner {
 public:
  explicit CampaignRunner(SimulatedRun usual)
      : usual_(std::move(usual)), data_(problem(), rng_, Values::kWide) {
    SimulatedRun run = usual_;
    run.options.strict = true;  // what the campaign takes for noticed must not be there without it
    EXPECT_TRUE(simulate(data_, run));
    bits_.assign(data_.d.data.begin(), data_.d.data.end());
  }

  ptxsim::Trial operator()(std::shared_ptr<const ptxsim::Program> program,
                           const ptxsim::Options& options) {
    SimulatedRun run = usual_;
    run.options = options;
    run.mutant = std::move(program);
    data_.poison_d();
    const bool ran = static_cast<bool>(simulate(data_, run));
    const bool same = std::equal(bits_.begin(), bits_.end(), data_.d.data.begin());
    return {ran && same, std::move(run.result)};
  }

 private:
  Problem problem() const {
    const bool persistent = usual_.persistent_ctas != 0;
    const auto* const instance = cuda::sm100a_pair::find_instance(usual_.tile_n, DataType::kF32,
                                                                  usual_.prepared, persistent);
    return campaign_problem(usual_.tile_n, instance->stages, persistent);
  }

  SimulatedRun usual_;
  Rng rng_;
  RandomCase data_;
  std::vector<uint8_t> bits_;
};

void campaign(const SimulatedRun& usual, uint64_t most) {
  CampaignRunner runner(usual);
  run_campaign(
      fused_program(usual.tile_n, DataType::kF32, usual.prepared, usual.persistent_ctas != 0),
      runner, most, most / 2);
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

}  // namespace
}  // namespace dualgemm::test
