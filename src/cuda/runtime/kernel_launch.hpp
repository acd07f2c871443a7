// From a launch as a value to a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/runtime/launch_value.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

// Enqueues it. An error is one of the launch, or of an earlier one.
Status enqueue(const KernelLaunch& launch, cudaStream_t stream);

}  // namespace dualgemm::cuda
