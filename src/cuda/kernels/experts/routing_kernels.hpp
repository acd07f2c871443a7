// The compiled kernels around the experts' products, and what the host code knows of them.
#pragma once

#include "cuda/kernels/experts/routing_params.hpp"
#include "cuda/ptx/target.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

inline constexpr int kRouteThreads = 1024;  // and ids of a CTA, until there are so many CTAs:
inline constexpr int kMostRouteCtas = 32;
inline constexpr int kRouteCounts = 12 << 10;  // in shared memory: 48 KB need no permission
inline constexpr int kCombineThreads = 128;

inline constexpr int kGatherThreads = 256;

Kernel route_kernel();
Kernel combine_rows_kernel(OutputType rows);
Kernel gather_rows_kernel();

}  // namespace dualgemm::cuda
