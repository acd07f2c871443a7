#pragma once

#include "tools/cli/options.hpp"

namespace dualgemm::cli {

// `run --experts`: all experts of a layer in one grouped problem.
int run_experts(const RunCommand& command);

}  // namespace dualgemm::cli
