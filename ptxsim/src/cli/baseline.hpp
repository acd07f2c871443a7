// A baseline: findings that are known, a list of suppressions that the command writes itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/findings_output.hpp"

namespace ptxsim::cli {

// As JSON, each finding that fails a run once. What has no rule (faults, deadlocks, wrong results)
// cannot be suppressed, and is left out.
std::string to_baseline(const std::vector<FindingsOfRun>& runs, bool strict);
std::optional<Error> write_baseline(const FindingsArgs& args,
                                    const std::vector<FindingsOfRun>& runs, bool strict);

}  // namespace ptxsim::cli
