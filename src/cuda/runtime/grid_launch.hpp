// A launch as a value where KernelLaunch is too small for it: CUTLASS's schedulers want a grid of
// three dimensions, and their parameters hold eight tensor maps.
#pragma once

#include <array>
#include <cstdint>

#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

struct GridLaunch {
  static constexpr size_t kMaxParamBytes = 4096;

  Kernel kernel;
  std::array<uint32_t, 3> grid{};  // CTAs
  uint32_t cluster_ctas = 1;       // along x; divides grid[0]
  uint32_t threads = 0;
  uint32_t dynamic_smem_bytes = 0;
  uint32_t param_bytes = 0;
  alignas(128) std::array<uint8_t, kMaxParamBytes> params{};
};

}  // namespace dualgemm::cuda
