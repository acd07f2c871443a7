// Mutants of the kernel: each drops or weakens one statement that moves data or synchronises. Every
// one that is executed must give wrong bits or be reported; survivors.json names the exceptions,
// each with its reason. DUALGEMM_CAMPAIGN=all tries every mutant of both tile widths
// (scripts/run_campaign); otherwise an even selection.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "kernels/sm100a/simulated_run.hpp"
#include "ptxsim/case/survivors.hpp"

namespace dualgemm::test {
namespace {

using ptxsim::Fate;
using ptxsim::MutantResult;
using ptxsim::Mutation;

bool all_mutants() {
  const char* value = std::getenv("DUALGEMM_CAMPAIGN");
  return value != nullptr && std::string(value) == "all";
}

std::vector<ptxsim::Survivor> allowed_survivors() {
  std::ostringstream text;
  text << std::ifstream(DUALGEMM_SURVIVORS).rdbuf();
  auto list = ptxsim::parse_survivors(text.str());
  EXPECT_TRUE(list.ok()) << (list.ok() ? "" : ptxsim::to_string(list.error()));
  return list.ok() ? *list : std::vector<ptxsim::Survivor>{};
}

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

struct Counts {
  uint64_t executed = 0, noticed = 0, allowed = 0;
};

void run_campaign(int tile_n, uint64_t most, Compared compared) {
  const auto survivors = allowed_survivors();
  const auto program = fused_program(tile_n, DataType::kF32);
  ASSERT_NE(program, nullptr);
  std::map<std::string, Counts> groups;
  const auto look_at = [&](const MutantResult& mutant) {
    Counts& counts = groups[mutant.mutation.group];
    if (mutant.fate == Fate::kNotExecuted) return;
    ++counts.executed;
    if (mutant.fate != Fate::kSurvived) {
      ++counts.noticed;
      return;
    }
    const auto* reason = ptxsim::find_survivor(survivors, *program, mutant.mutation);
    counts.allowed += reason != nullptr;
    if (reason != nullptr)
      std::cout << "may survive: " << ptxsim::to_string(*program, mutant.mutation) << "\n";
    EXPECT_NE(reason, nullptr) << "survived: " << ptxsim::to_string(*program, mutant.mutation);
  };
  const ptxsim::CampaignOptions options{
      .seeds = 3, .max_mutants = all_mutants() ? 0 : most, .strict = true};
  CampaignRunner runner(tile_n, compared);
  const auto campaign = ptxsim::run_campaign(program, {std::ref(runner)}, options, look_at);
  ASSERT_TRUE(campaign.ok()) << ptxsim::to_string(campaign.error());
  EXPECT_GE(campaign.value().executed, most / 2);
  for (const auto& [group, counts] : groups)
    std::cout << group << ": " << counts.executed << " executed, " << counts.noticed << " noticed, "
              << counts.allowed << " allowed to survive\n";
  std::cout << campaign.value().executed << " mutants executed, " << campaign.value().killed
            << " noticed\n";
}

TEST(Sm100aMutants, NarrowTile) { run_campaign(64, 64, Compared::kWithExpected); }
TEST(Sm100aMutants, WideTile) { run_campaign(128, 32, Compared::kWithExpected); }
TEST(Sm100aMutants, NarrowTileWithoutExpectedResults) {
  run_campaign(64, 24, Compared::kWithUnchanged);
}

}  // namespace
}  // namespace dualgemm::test
