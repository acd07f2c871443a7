// Findings for other tools: SARIF 2.1.0 and JUnit's XML, and what `run` and `exec` have in common
// for suppressions.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ptxsim/suppressions.hpp"

namespace ptxsim::cli {

struct FindingsArgs {
  std::string suppress_file, baseline_file, new_baseline_file, sarif_file, junit_file;
};
void add_findings_options(CLI::App& app, FindingsArgs& args);

// One finding, or what a run does wrong that has no rule: a fault, a value that is not expected, a
// call that is refused.
struct Finding {
  std::string rule;      // "R17", or "run", "leak", "call"
  std::string severity;  // "error", "warning", "advisory"
  std::string message;   // in one line
  std::string details;   // who, the earlier access, what is missing, how to mend it; may be empty
  std::string kernel;
  std::string entry;  // of it, as suppressions name it; empty: what has no rule
  Place place;        // ptx_line 0: none
  uint64_t count = 1;
  std::optional<std::string> suppressed;  // the reason
};
// What was run: of `run` a schedule and a seed, of `exec` the program.
struct FindingsOfRun {
  std::string name, kernel;
  std::vector<Finding> findings;
};

Finding finding_of(const Report& report);

// Those of --suppress, then those of --baseline; empty when no file is given.
Result<std::vector<Suppression>> load_suppressions(const FindingsArgs& args);
// Lines for the user about entries that no run had a finding for: "unused suppression ...", "stale
// baseline entry ...".
std::vector<std::string> unused_suppressions(const std::vector<Suppression>& all,
                                             const std::vector<bool>& used);

std::string to_sarif(const std::vector<FindingsOfRun>& runs);
std::string to_junit(const std::vector<FindingsOfRun>& runs);
// Writes the files that are asked for.
std::optional<Error> write_findings(const FindingsArgs& args,
                                    const std::vector<FindingsOfRun>& runs);

}  // namespace ptxsim::cli
