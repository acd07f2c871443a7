// argv -> Command. Parsing is separate from execution, so that it can be tested and fuzzed with no
// side effects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/exit_codes.hpp"
#include "tools/cli/options.hpp"
#include "tools/cli/print/terminal.hpp"

namespace dualgemm::cli {

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
