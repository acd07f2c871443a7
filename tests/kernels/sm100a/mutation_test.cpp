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

// Mutants are compared with the right D, or, as `ptxsim mutate` does with a case that expects no
// results, with what the unchanged kernel leaves under the same schedule and seed.
enum class Compared { kWithExpected, kWithUnchanged };

class CampaignRunner {
 public:
  CampaignRunner(int tile_n, Compared compared)
      : tile_n_(tile_n), compared_(compared), data_(campaign_problem(tile_n), rng_, Values::kWide) {
    SimulatedRun run{.tile_n = tile_n_};
    EXPECT_TRUE(simulate(data_, run));
    bits_.assign(data_.d.data.begin(), data_.d.data.end());
  }

  ptxsim::Trial operator()(std::shared_ptr<const ptxsim::Program> program,
                           const ptxsim::Options& options) {
    SimulatedRun run{.options = options, .tile_n = tile_n_};
    run.mutant = std::move(program);
    data_.poison_d();
    const bool ran = static_cast<bool>(simulate(data_, run));
    if (compared_ == Compared::kWithUnchanged) {
      const auto* first = reinterpret_cast<const std::byte*>(data_.d.data.data());
      ptxsim::Outputs outputs{{{"d", {first, first + bits_.size()}, {}, true}}};
      return {ran, std::move(run.result), std::move(outputs)};
    }
    const bool same = std::equal(bits_.begin(), bits_.end(), data_.d.data.begin());
    return {ran && same, std::move(run.result)};
  }

 private:
  int tile_n_;
  Compared compared_;
  Rng rng_;
  RandomCase data_;
  std::vector<uint8_t> bits_;
};

void campaign(int tile_n, uint64_t most, Compared compared) {
  CampaignRunner runner(tile_n, compared);
  run_campaign(fused_program(tile_n, DataType::kF32), runner, most, most / 2);
}

TEST(Sm100aMutants, NarrowTile) { campaign(64, 64, Compared::kWithExpected); }
TEST(Sm100aMutants, WideTile) { campaign(128, 32, Compared::kWithExpected); }
TEST(Sm100aMutants, NarrowTileWithoutExpectedResults) {
  campaign(64, 24, Compared::kWithUnchanged);
}

}  // namespace
}  // namespace dualgemm::test
