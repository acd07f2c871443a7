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

class CampaignRunner {
 public:
  CampaignRunner(int tile_n, bool prepared)
      : tile_n_(tile_n),
        prepared_(prepared),
        data_(problem_of(tile_n, prepared), rng_, Values::kWide) {
    SimulatedRun run{.tile_n = tile_n_, .prepared = prepared_};
    run.options.strict = true;  // what the campaign takes for noticed must not be there without it
    EXPECT_TRUE(simulate(data_, run));
    bits_.assign(data_.d.data.begin(), data_.d.data.end());
  }

  ptxsim::Trial operator()(std::shared_ptr<const ptxsim::Program> program,
                           const ptxsim::Options& options) {
    SimulatedRun run{.options = options, .tile_n = tile_n_, .prepared = prepared_};
    run.mutant = std::move(program);
    data_.poison_d();
    const bool ran = static_cast<bool>(simulate(data_, run));
    const bool same = std::equal(bits_.begin(), bits_.end(), data_.d.data.begin());
    return {ran && same, std::move(run.result)};
  }

 private:
  static Problem problem_of(int tile_n, bool prepared) {
    return campaign_problem(
        tile_n, cuda::sm100a_pair::find_instance(tile_n, DataType::kF32, prepared)->stages);
  }

  int tile_n_;
  bool prepared_;
  Rng rng_;
  RandomCase data_;
  std::vector<uint8_t> bits_;
};

void campaign(int tile_n, bool prepared, uint64_t most) {
  CampaignRunner runner(tile_n, prepared);
  run_campaign(fused_program(tile_n, DataType::kF32, prepared), runner, most, most / 2);
}

TEST(Sm100aPairMutants, NarrowTile) { campaign(64, false, 24); }
TEST(Sm100aPairMutants, WideTile) { campaign(128, false, 12); }
TEST(Sm100aPairMutants, PreparedNarrowTile) { campaign(48, true, 16); }
TEST(Sm100aPairMutants, PreparedWideTile) { campaign(112, true, 12); }

}  // namespace
}  // namespace dualgemm::test
