#pragma once

#include "tools/cli/options.hpp"

namespace dualgemm::cli {

// `run --mlp`: a whole gated MLP, Down too; with --experts all of a layer.
int run_mlp(const RunCommand& command);

}  // namespace dualgemm::cli
