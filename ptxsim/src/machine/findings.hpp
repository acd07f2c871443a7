// Findings that the interpreter makes by itself, where what a kernel does works and is not what the
// manual says.
#pragma once

#include <string>

#include "machine/execution.hpp"
#include "ptxsim/report.hpp"

namespace ptxsim {

struct MachineFinding {
  int rule;
  Severity severity;
  std::string message, missing, fix;
  int other_statement = -1;
  std::string other = {};  // what is said of that one
};
// Adds a finding on the statement under way, by a lane (-1: the whole warp); does nothing where the
// run is not checked.
void add_finding(const Execution& x, int lane, MachineFinding finding);

}  // namespace ptxsim
