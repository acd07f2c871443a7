// How kernels are interpreted and checked: what `run` and `exec` have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "ptxsim/ptxsim.hpp"

namespace ptxsim::cli {

// CLI11 takes -1 for the largest unsigned number.
extern const CLI::Validator kUnsigned;

struct InterpreterArgs {
  std::string mma = "exact";
  uint64_t budget = 2'000'000'000;
  double seconds = 0;     // 0: no limit
  uint32_t resident = 0;  // 0: 4, and as many as a GPU holds where those do not end
  uint32_t sample = 0;    // clusters of a launch; 0: all
  bool no_sanitizer = false, strict = false, allow_uninitialized = false;
};

// All of them but --strict, which each command explains.
void add_interpreter_options(CLI::App& app, InterpreterArgs& args);
// Schedule and seed are left as they are by default.
Options options_of(const InterpreterArgs& args);

}  // namespace ptxsim::cli
