// `ptxsim run`
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace ptxsim::cli {

struct RunArgs {
  std::string kernel, entry, case_file, schedule = "eager", mma = "exact", trace;
  uint64_t seed = 1, seeds = 1, budget = 2'000'000'000;
  uint32_t resident = 4;
  bool fast = false;
  bool no_sanitizer = false, strict = false, allow_uninitialized = false, stats = false,
       json = false, verbose = false, printf_threads = false;
  std::vector<std::string> dumps;  // buffer=file
};

void add_run_options(CLI::App& app, RunArgs& args);
int run_command(const RunArgs& args);

}  // namespace ptxsim::cli
