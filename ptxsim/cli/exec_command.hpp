// `ptxsim exec -- program`: a host program with the stand-in for CUDA below it, and the report of what it launched.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace ptxsim::cli {

struct ExecArgs {
  std::string device = "b200";
  std::string schedule = "eager", mma = "exact";
  uint64_t seed = 1, budget = 2'000'000'000;
  uint32_t resident = 4;
  bool strict = false, no_sanitizer = false, allow_uninitialized = false, verbose = false,
       json = false;
  std::string report_file;               // empty: stderr
  std::string ptx_folder;                // empty: the PTX is not kept
  std::vector<std::string> substitutes;  // files of PTX
  std::vector<std::string> program;
};

void add_exec_options(CLI::App& app, ExecArgs& args);
// The program's exit status where it is not 0 (128 + the signal that ended it); 1: there are findings; 2: it could not
// be started.
int exec_command(const ExecArgs& args);

}  // namespace ptxsim::cli
