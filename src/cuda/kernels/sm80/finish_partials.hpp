// What follows CTAs that divided the k of the tiles of D: their sums become outputs.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/config.hpp"
#include "cuda/kernels/sm80/params.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda::sm80 {

struct FinishParams {
  Params of_tiles;  // of the launch that made the sums
  TileShape shape;  // its kernel's
  uint32_t items;   // of a warp
};

// One warp for each item.
KernelLaunch finish_partials_launch(const FinishParams& params);

}  // namespace dualgemm::cuda::sm80
