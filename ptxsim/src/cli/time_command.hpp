// `ptxsim time kernel.ptx` or `--launch launch.json`: an estimate of how long a launch takes on a
// GPU.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace ptxsim::cli {

struct TimeArgs {
  std::string kernel, entry, case_file;
  std::string launches;      // file of descriptions, in place of a kernel
  std::string gpu = "b200";  // built in, or a file
  std::vector<uint32_t> clusters;
  bool whole_grid = false;
  std::string sass = "auto";  // "off", "ptxas", or a file
  uint32_t ctas_per_sm = 0;   // 0: what shared memory and threads allow
  bool dependent_launch = false;
  uint32_t draws = 200;
  uint64_t seed = 1;
  bool warm = false, in_graph = false;
  std::string svg;  // file
  bool json = false;
};

void add_time_options(CLI::App& app, TimeArgs& args);
int time_command(const TimeArgs& args);  // the exit code

}  // namespace ptxsim::cli
