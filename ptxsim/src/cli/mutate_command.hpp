// `ptxsim mutate`
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace ptxsim::cli {

struct MutateArgs {
  std::string kernel, entry, allowed_file;
  std::vector<std::string> case_files;
  uint64_t limit = 0, seeds = 3;
  std::vector<uint32_t> residents{4};  // each with every case
  uint32_t line = 0;
  bool strict = false, list = false;
};

void add_mutate_options(CLI::App& app, MutateArgs& args);
// 0 when every executed mutant was noticed or is allowed to survive; 1 otherwise; 2 for input that
// is not valid.
int mutate_command(const MutateArgs& args);

}  // namespace ptxsim::cli
