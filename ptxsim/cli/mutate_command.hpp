// `ptxsim mutate`
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace ptxsim::cli {

struct MutateArgs {
  std::string kernel, entry, case_file, allowed_file;
  uint64_t limit = 0, seeds = 3;
  bool strict = false, list = false;
};

void add_mutate_options(CLI::App& app, MutateArgs& args);
// 0 when every executed mutant was noticed or is allowed to survive; 1 otherwise; 2 for input that
// is not valid.
int mutate_command(const MutateArgs& args);

}  // namespace ptxsim::cli
