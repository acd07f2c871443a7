// Sizes that follow from a problem, shared by the choice of an instance and the launch.
#pragma once

#include <cstdint>

#include "core/int_math.hpp"
#include "core/problem.hpp"
#include "cuda/kernels/sm90a/config.hpp"

namespace dualgemm::cuda::sm90a {

using core::ceil_div;
using core::round_up;

inline int64_t k_tiles_of(const Problem& p) { return ceil_div(p.k, kTileK); }
// Contiguous groups share one.
inline int64_t batches_of_a(const Problem& p) {
  return p.grouping == Grouping::kContiguous ? 1 : p.l;
}
inline int64_t tile_n_of(const Config& config) { return config.n_warpgroups * kWarpgroupCols; }
inline int64_t tiles_of(const Problem& p, const Config& config) {
  return ceil_div(p.m, config.tile_m) * ceil_div(p.n, tile_n_of(config)) * p.l;
}

}  // namespace dualgemm::cuda::sm90a
