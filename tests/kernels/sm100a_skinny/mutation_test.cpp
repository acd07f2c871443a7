// Mutants of the kernel: each drops or weakens one statement that moves data or synchronises. Every
// one that is executed must give wrong bits or be reported; survivors.json names the exceptions,
// each with its reason. DUALGEMM_CAMPAIGN=all tries every mutant (scripts/run_campaign); otherwise
// an even selection.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "kernels/sm100a_skinny/simulated_run.hpp"
#include "ptxsim/case/survivors.hpp"

namespace dualgemm::test {
namespace {

using ptxsim::Fate;
using ptxsim::MutantResult;

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

// One instance on a problem whose ring goes around more than twice, so that every barrier is waited
// for; M and N end inside a tile, and a warp of the epilogue has rows twice.
class CampaignRunner {
 public:
  CampaignRunner(const Problem& problem, int tile_n)
      : tile_n_(tile_n), data_(problem, rng_, Values::kWide) {
    SkinnyRun run{.tile_n = tile_n_};
    EXPECT_TRUE(simulate(data_, run));
    codes_.assign(data_.d.data.begin(), data_.d.data.end());
    scales_.assign(data_.d.scales.begin(), data_.d.scales.end());
  }

  ptxsim::Trial operator()(std::shared_ptr<const ptxsim::Program> program,
                           const ptxsim::Options& options) {
    SkinnyRun run{.options = options, .tile_n = tile_n_};
    run.mutant = std::move(program);
    data_.poison_d();
    const bool ran = static_cast<bool>(simulate(data_, run));
    const bool same = std::equal(codes_.begin(), codes_.end(), data_.d.data.begin()) &&
                      std::equal(scales_.begin(), scales_.end(), data_.d.scales.begin());
    return {ran && same, std::move(run.result)};
  }

 private:
  int tile_n_;
  Rng rng_;
  RandomCase data_;
  std::vector<uint8_t> codes_, scales_;
};

struct Counts {
  uint64_t executed = 0, noticed = 0, allowed = 0;
};

void run_campaign(int64_t m, int tile_n, DataType output, uint64_t most) {
  Problem problem = swizzled({.m = m, .n = tile_n + 16, .d = {.type = output}});
  problem.d.scale_layout = ScaleLayout::kSwizzled128x4;
  const auto& instance = instance_of(problem, {.tile_n = tile_n});
  problem.k = 256 * (2 * instance.stages + 1) + 64;
  const auto survivors = allowed_survivors();
  const auto program = program_of({"dual_gemm_sm100a_skinny", instance.entry, instance.kernel});
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
  CampaignRunner runner(problem, tile_n);
  const auto campaign = ptxsim::run_campaign(program, {std::ref(runner)}, options, look_at);
  ASSERT_TRUE(campaign.ok()) << ptxsim::to_string(campaign.error());
  EXPECT_GE(campaign.value().executed, most / 4);  // D's other types are not
  for (const auto& [group, counts] : groups)
    std::cout << group << ": " << counts.executed << " executed, " << counts.noticed << " noticed, "
              << counts.allowed << " allowed to survive\n";
  std::cout << campaign.value().executed << " mutants executed, " << campaign.value().killed
            << " noticed\n";
}

TEST(Sm100aSkinnyMutants, WideTile) { run_campaign(28, 64, DataType::kF32, 48); }
TEST(Sm100aSkinnyMutants, NarrowTile) { run_campaign(124, 32, DataType::kE2M1, 24); }

}  // namespace
}  // namespace dualgemm::test
