// Sizes that follow from a problem, shared by the choice of an instance and the launch.
#pragma once

#include <cstdint>

#include "core/int_math.hpp"
#include "core/problem.hpp"
#include "cuda/kernels/sm90a/config.hpp"

namespace dualgemm::cuda::sm90a {

inline constexpr int64_t kTmaAlignment = 16;  // of a tensor map's address and strides, in bytes

using core::ceil_div;
using core::round_up;

inline int64_t k_tiles_of(const Problem& p) { return ceil_div(p.k, kTileK); }
inline int64_t tile_n_of(const Config& config) { return config.n_warpgroups * kWarpgroupCols; }
inline int64_t tiles_of(const Problem& p, const Config& config) {
  return ceil_div(p.m, config.tile_m) * ceil_div(p.n, tile_n_of(config)) * p.l;
}

inline int64_t row_bytes(const core::ResolvedMatrix& matrix) { return matrix.cols / 2; }
inline int64_t copied_row_bytes(const core::ResolvedMatrix& matrix) {
  return round_up(row_bytes(matrix), kTmaAlignment);
}

// What the TMA unit cannot read wherever it begins: launch.hpp, Workspace.
inline bool data_needs_copy(const core::ResolvedMatrix& matrix, int64_t batches) {
  return (matrix.rows > 1 && matrix.ld / 2 % kTmaAlignment != 0) ||
         (batches > 1 && matrix.batch_stride / 2 % kTmaAlignment != 0);
}

inline bool linear_scales_suit(const core::ResolvedMatrix& matrix, int64_t batches) {
  return matrix.scale_layout == ScaleLayout::kLinear &&
         (matrix.rows == 1 || matrix.scale_ld % kTmaAlignment == 0) &&
         (batches == 1 || matrix.scale_batch_stride % kTmaAlignment == 0);
}

inline bool swizzled_scales_suit(const core::ResolvedMatrix& matrix, int64_t batches) {
  return matrix.scale_layout == ScaleLayout::kSwizzled128x4 && matrix.cols % 64 == 0 &&
         (batches == 1 || matrix.scale_batch_stride % kTmaAlignment == 0);
}

}  // namespace dualgemm::cuda::sm90a
