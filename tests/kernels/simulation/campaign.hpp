// Mutants of a kernel: each drops or weakens one statement that moves data or synchronises. Every one
// that is executed must give wrong bits or be reported; the target's survivors.json names the
// exceptions, each with its reason. DUALGEMM_CAMPAIGN=all tries every mutant
// (scripts/run_campaign); otherwise an even selection.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

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
