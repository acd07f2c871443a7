// Completion scripts for shells, generated from the table of commands.
#pragma once

#include "dualgemm/status.hpp"
#include "tools/cli/parse/command_docs.hpp"

namespace dualgemm::cli {

inline const std::vector<std::string>& shells() {
  static const std::vector<std::string> names = {"bash", "zsh", "fish"};
  return names;
}

// What `shell` sources. Precondition: one of shells().
std::string completion_script(const ProgramDoc& program, const std::string& shell);

}  // namespace dualgemm::cli
