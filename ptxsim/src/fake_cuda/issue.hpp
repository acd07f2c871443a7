// What the runtime's and the driver's launches have in common.
#pragma once

#include "fake_cuda/abi.hpp"
#include "fake_cuda/session.hpp"

namespace ptxsim::cuda {

// Clusters, cooperative and programmatic dependent launches; others have no effect on what a kernel
// computes.
void apply_attributes(LaunchRequest& request, const abi::LaunchAttribute* attributes,
                      uint32_t count);
// Checks the launch, and takes the parameters.
Status prepare_launch(Session& session, LaunchRequest& request, void** arguments);
// The same, and does it or captures it.
Status issue_launch(Session& session, LaunchRequest request, void** arguments, void* stream);

}  // namespace ptxsim::cuda
