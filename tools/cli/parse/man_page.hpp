// dualgemm.1, generated from the table of commands.
#pragma once

#include "tools/cli/parse/command_docs.hpp"

namespace dualgemm::cli {

// roff with the man macros.
std::string man_page(const ProgramDoc& program);

}  // namespace dualgemm::cli
