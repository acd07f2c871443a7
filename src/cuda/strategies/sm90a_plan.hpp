// The part of planning that all strategies with the wgmma kernel share.
#pragma once

#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/strategies/kernel_choice.hpp"

namespace dualgemm::cuda {

inline KernelChoice wgmma_choice(const sm90a::Instance& instance) {
  return {.kernel = sm90a::kKernelName,
          .shape = {.tile_m = instance.config.tile_m,
                    .tile_n = instance.config.n_warpgroups * sm90a::kWarpgroupCols,
                    .tile_k = sm90a::kTileK,
                    .stages = instance.weight_stages,
                    .k_warpgroups = instance.config.k_warpgroups}};
}

}  // namespace dualgemm::cuda
