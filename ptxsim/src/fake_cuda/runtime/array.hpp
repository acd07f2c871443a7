// What the calls about CUDA arrays, textures and surfaces share, and cudaMemcpy3D where one side,
// or both, is an array.
#pragma once

#include <optional>

#include "fake_cuda/abi.hpp"
#include "fake_cuda/images.hpp"
#include "fake_cuda/session.hpp"

namespace ptxsim::cuda::runtime {

// The status of `refusal`, which the report of the program gets as one of `function`; kSuccess
// without one.
Status report_refusal(Session& session, const char* function,
                      const std::optional<Refusal>& refusal);

Status make_copy_of_arrays(Session& session, const abi::Copy3D& p, Operation& copy);

}  // namespace ptxsim::cuda::runtime
