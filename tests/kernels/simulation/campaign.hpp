// Mutants of a kernel: each drops or weakens one statement that moves data or synchronises. Every
// one that is executed must give wrong bits or be reported; the target's survivors.json names the
// exceptions, each with its reason. DUALGEMM_CAMPAIGN=all tries every mutant
// (scripts/run_campaign); otherwise an even selection.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/simulation/simulation.hpp"
#include "ptxsim/case/survivors.hpp"

namespace dualgemm::test {

inline bool all_mutants() {
  const char* value = std::getenv("DUALGEMM_CAMPAIGN");
  return value != nullptr && std::string(value) == "all";
}

inline std::vector<ptxsim::Survivor> allowed_survivors() {
  std::ostringstream text;
  text << std::ifstream(DUALGEMM_SURVIVORS).rdbuf();
  auto list = ptxsim::parse_survivors(text.str());
  EXPECT_TRUE(list.ok()) << (list.ok() ? "" : ptxsim::to_string(list.error()));
  return list.ok() ? *list : std::vector<ptxsim::Survivor>{};
}

// Mutants of one instance on one problem, by the simulate() of a kernel's tests: what is right is
// what the kernel itself leaves.
template <class Run>
class CampaignRunner {
 public:
  CampaignRunner(const Problem& problem, Run fixed, const std::vector<int32_t>& experts = {})
      : fixed_(std::move(fixed)), data_(problem, rng_, Values::kWide, experts) {
    Run run = fixed_;
    EXPECT_TRUE(run_on(run));
    codes_.assign(data_.d.data.begin(), data_.d.data.end());
    scales_.assign(data_.d.scales.begin(), data_.d.scales.end());
  }

  ptxsim::Trial operator()(std::shared_ptr<const ptxsim::Program> program,
                           const ptxsim::Options& options) {
    Run run = mutated(std::move(program), options);
    const bool ran = static_cast<bool>(run_on(run));
    const bool same = std::equal(codes_.begin(), codes_.end(), data_.d.data.begin()) &&
                      std::equal(scales_.begin(), scales_.end(), data_.d.scales.begin());
    return {ran && same, std::move(run.result)};
  }

 protected:
  Run mutated(std::shared_ptr<const ptxsim::Program> program,
              const ptxsim::Options& options) const {
    Run run = fixed_;
    run.options = options;
    run.mutant = std::move(program);
    return run;
  }
  // On a poisoned D; fails on what is reported, too.
  ::testing::AssertionResult run_on(Run& run) {
    data_.poison_d();
    return simulate(data_, run);
  }
  const RandomCase& data() const { return data_; }

 private:
  Run fixed_;
  Rng rng_;
  RandomCase data_;
  std::vector<uint8_t> codes_, scales_;
};

// `runner(program, options)` runs one mutant and says what became of D. At most `most` mutants, of
// which at least `least` must be executed: of D's other types none is.
template <class Runner>
void run_campaign(const std::shared_ptr<const ptxsim::Program>& program, Runner& runner,
                  uint64_t most, uint64_t least) {
  struct Counts {
    uint64_t executed = 0, noticed = 0, allowed = 0;
  };
  ASSERT_NE(program, nullptr);
  const auto survivors = allowed_survivors();
  std::map<std::string, Counts> groups;
  const auto look_at = [&](const ptxsim::MutantResult& mutant) {
    Counts& counts = groups[mutant.mutation.group];
    if (mutant.fate == ptxsim::Fate::kNotExecuted) return;
    ++counts.executed;
    if (mutant.fate != ptxsim::Fate::kSurvived) {
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
  const auto campaign = ptxsim::run_campaign(program, {std::ref(runner)}, options, look_at);
  ASSERT_TRUE(campaign.ok()) << ptxsim::to_string(campaign.error());
  EXPECT_GE(campaign.value().executed, least);
  for (const auto& [group, counts] : groups)
    std::cout << group << ": " << counts.executed << " executed, " << counts.noticed << " noticed, "
              << counts.allowed << " allowed to survive\n";
  std::cout << campaign.value().executed << " mutants executed, " << campaign.value().killed
            << " noticed\n";
}

}  // namespace dualgemm::test
