// The launch of a compiled kernel, as those of this architecture that wait for the grid before by
// themselves have it.
#pragma once

#include <cstdint>

#include "cuda/kernels/blackwell/instance.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda::blackwell {

// `module`: of the PTX that has it. `cluster_ctas`: of a cluster; divides `ctas`.
template <class Config, class Params>
KernelLaunch overlapping_launch(const char* module, const InstanceOf<Config>& instance,
                                int64_t ctas, int64_t cluster_ctas, const Params& params) {
  KernelLaunch launch{.kernel = {module, instance.entry, instance.kernel},
                      .ctas = static_cast<uint32_t>(ctas),
                      .threads = instance.threads,
                      .dynamic_smem_bytes = instance.dynamic_smem_bytes,
                      .cluster_ctas = static_cast<uint32_t>(cluster_ctas),
                      .overlaps_previous = true};
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda::blackwell
