// What `dualgemm help` prints.
#pragma once

#include "tools/cli/parse/command_docs.hpp"
#include "tools/cli/print/terminal.hpp"

namespace dualgemm::cli {

std::string help_text(const ProgramDoc& program, const Style& style);
std::string help_text(const CommandDoc& command, const Style& style);

// "fused, two_pass or fp8": for sentences that list what there is.
std::string sentence_of(const std::vector<std::string>& names);

// "-m, --m ROWS"
std::string signature(const OptionDoc& option);

// The description with its choices and its default.
std::string full_description(const OptionDoc& option);

}  // namespace dualgemm::cli
