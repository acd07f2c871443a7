// cudaMemcpy3D where one side, or both, is a CUDA array.
#pragma once

#include "ptxsim/cuda/abi.hpp"
#include "ptxsim/cuda/session.hpp"

namespace ptxsim::cuda::runtime {

Status copy_3d_of_arrays(Session& session, const abi::Copy3D& p, void* stream);

}  // namespace ptxsim::cuda::runtime
