// Rows of tokens to their experts and back on any GPU, bit for bit as core/routing.cpp: the
// launches of experts.hpp's functions, made without calling CUDA.
#pragma once

#include <vector>

#include "core/gather.hpp"
#include "core/routing.hpp"
#include "cuda/runtime/launch_value.hpp"
#include "dualgemm/experts.hpp"

namespace dualgemm::cuda {

// One launch each. kUnsupported: more than the kernels count to.
Expected<std::vector<KernelLaunch>> route_launches(const RoutingProblem& problem,
                                                   const RoutingBuffers& buffers);
Expected<std::vector<KernelLaunch>> combine_launches(const CombineProblem& problem,
                                                     const CombineBuffers& buffers);
Expected<std::vector<KernelLaunch>> gather_launches(const core::Gather& gather);

}  // namespace dualgemm::cuda
