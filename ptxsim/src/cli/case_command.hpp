// `ptxsim case`
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace ptxsim::cli {

struct CaseArgs {
  std::string kernel, entry, out = "case.json";
  bool force = false;
};

void add_case_options(CLI::App& app, CaseArgs& args);
// 0 when the case was written; 2 for input that is not valid, or a file that is there already.
int case_command(const CaseArgs& args);

}  // namespace ptxsim::cli
