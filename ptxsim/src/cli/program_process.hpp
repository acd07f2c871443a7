// The program below `ptxsim exec`, as a process.
#pragma once

#include <string>
#include <vector>

namespace ptxsim::cli {

// Starts it and waits for its end. Signals that end a program are the program's: SIGHUP, SIGINT,
// SIGQUIT and SIGTERM that this process gets are passed on, so that a report can still be made.
// Returns the exit status; 128 + the signal that ended it, as a shell says it; -1: errno says why
// it did not start.
int run_program(const std::vector<std::string>& program);

}  // namespace ptxsim::cli
