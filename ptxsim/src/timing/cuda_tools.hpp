// What ptxas makes of a kernel, by the tools of CUDA where they are there.
#pragma once

#include <string>
#include <vector>

#include "ptxsim/ptxsim.hpp"
#include "timing/sass_listing.hpp"

namespace ptxsim::timing {

// The tool that is missing, ptxas or nvdisasm; empty: both are there.
std::string missing_cuda_tool();
inline constexpr const char* kWhereToolsAre =
    "$CUDA_HOME/bin, $CUDA_PATH/bin or $PATH, or, with the first two not set, /usr/local/cuda/bin";

// Runs ptxas on the entry of `program`, whose module's text is `ptx`, for the PTX's own target, and
// nvdisasm on what it makes. A tool that is missing or fails is an error that says what was run,
// in a temporary folder that is removed, and its status.
Result<std::vector<SassSection>> sass_by_tools(const std::string& ptx, const Program& program);

}  // namespace ptxsim::timing
