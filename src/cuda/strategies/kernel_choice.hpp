// Which of the compiled kernels a plan gets: the kernel's own choice, or what the caller demands.
#pragma once

#include <cstdint>
#include <span>

#include "plan/strategy.hpp"

namespace dualgemm::cuda {

// What a plan shows of a compiled kernel; 0: the kernel has none.
struct KernelNumbers {
  int64_t tile_m = 0, tile_n = 0, tile_k = 0, stages = 0, k_warpgroups = 0;
  bool operator==(const KernelNumbers&) const = default;
};

// `usual` if it satisfies the constraints, else the first of `compiled` that does. The error lists
// those that there are for the problem.
Expected<KernelNumbers> choose_kernel(std::span<const KernelNumbers> compiled,
                                      const KernelNumbers& usual,
                                      const PlanConstraints& constraints);

void fill_in(Plan& plan, const KernelNumbers& kernel);

}  // namespace dualgemm::cuda
