// From a launch as a value to a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/runtime/grid_launch.hpp"
#include "cuda/runtime/launch_value.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

// Enqueues it. An error is one of the launch, or of an earlier one.
Status enqueue(const KernelLaunch& launch, cudaStream_t stream);
Status enqueue(const GridLaunch& launch, cudaStream_t stream);

// How many of its clusters the current GPU runs at once; its parameters do not matter.
Expected<int> max_active_clusters(const KernelLaunch& launch);

}  // namespace dualgemm::cuda
