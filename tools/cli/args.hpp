// argv -> Command. Parsing is separate from execution, so that it can be tested and fuzzed with no
// side effects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/options.hpp"
#include "tools/cli/terminal.hpp"

namespace dualgemm::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // the operation failed: I/O, bad file, verification
inline constexpr int kExitUsage = 2;   // the request itself is wrong

struct ParseOutcome {
  std::optional<Command> command;  // empty: print the two texts and exit with exit_code
  int exit_code = kExitOk;
  std::string out, err;
  ColourChoice colour = ColourChoice::kAuto;
};

// `arguments` without the program's name; `facts` of stdout, for which help is set. Never throws,
// touches no file.
ParseOutcome parse_arguments(const std::vector<std::string>& arguments,
                             const StreamFacts& facts = {});

}  // namespace dualgemm::cli
