// Sizes that follow from a problem, shared by the choice of an instance and the launch.
#pragma once

#include <cstdint>

#include "cuda/kernels/hopper/extents.hpp"
#include "cuda/kernels/sm90a/config.hpp"

namespace dualgemm::cuda::sm90a {

using core::ceil_div;
using hopper::batches_of_a;
using hopper::k_tiles_of;

inline int64_t tiles_of(const Problem& p, const Config& config) {
  return ceil_div(p.m, config.tile_m) * ceil_div(p.n, tile_n_of(config)) * p.l;
}

}  // namespace dualgemm::cuda::sm90a
