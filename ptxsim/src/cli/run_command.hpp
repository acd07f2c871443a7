// `ptxsim run`
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/findings_output.hpp"
#include "cli/interpreter_options.hpp"

namespace ptxsim::cli {

struct RunArgs : InterpreterArgs, FindingsArgs {
  std::string kernel, entry, case_file, schedule = "eager", trace;
  uint64_t seed = 1, seeds = 1;
  bool fast = false, stats = false, json = false, verbose = false, printf_threads = false;
  std::vector<std::string> dumps;  // buffer=file
};

void add_run_options(CLI::App& app, RunArgs& args);
int run_command(const RunArgs& args);

}  // namespace ptxsim::cli
