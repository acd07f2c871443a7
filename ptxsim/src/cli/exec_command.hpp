// `ptxsim exec -- program`: a host program with the stand-in for CUDA below it, and the report of
// what it launched.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/findings_output.hpp"
#include "cli/interpreter_options.hpp"

namespace ptxsim::cli {

struct ExecArgs : InterpreterArgs, FindingsArgs {
  std::string device = "b200", schedule = "eager";
  uint64_t seed = 1;
  uint32_t max_clusters = UINT32_MAX;
  bool verbose = false, json = false, time = false, once = false;
  std::string gpu_file;                  // parameters of the clock; empty: those of `device`
  std::string sass = "auto";             // "off", "ptxas"
  std::string report_file;               // empty: stderr
  std::string ptx_folder;                // empty: the PTX is not kept
  std::vector<std::string> substitutes;  // files of PTX
  std::vector<std::string> program;
};

void add_exec_options(CLI::App& app, ExecArgs& args);
// The program's exit status where it is not 0 (128 + the signal that ended it); 1: there are
// findings; 2: it could not be started.
int exec_command(const ExecArgs& args);

}  // namespace ptxsim::cli
