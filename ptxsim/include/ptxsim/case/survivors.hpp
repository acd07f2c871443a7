// Mutants that may survive a campaign, each with the reason: a JSON list of objects
//   {"entry": "...", "group": "...", "what": "...", "text": "...", "reason": "..."}
// A mutant is meant when entry, group, what and text are part of its own; entry, group and what may
// be left out.
#pragma once

#include <string>
#include <vector>

#include "ptxsim/mutate/mutation.hpp"

namespace ptxsim {

struct Survivor {
  std::string entry, group, what, text, reason;
  int occurrence = -1;  // -1: any
};

Result<std::vector<Survivor>> parse_survivors(const std::string& json);
const Survivor* find_survivor(const std::vector<Survivor>& list, const Program& program,
                              const Mutation& mutation);

}  // namespace ptxsim
