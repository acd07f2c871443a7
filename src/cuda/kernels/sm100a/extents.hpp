// Sizes that follow from a problem, shared by the choice of an instance and the launch.
#pragma once

#include <cstdint>

#include "core/int_math.hpp"
#include "core/problem.hpp"
#include "cuda/kernels/sm100a/config.hpp"

namespace dualgemm::cuda::sm100a {

inline constexpr int64_t kTmaAlignment = 16;  // of a tensor map's address and strides, in bytes

using core::ceil_div;
using core::round_up;

inline int64_t num_ctas(const Problem& p, int64_t tile_n) {
  return ceil_div(p.m, kTileM) * ceil_div(p.n, tile_n) * p.l;
}

inline int64_t row_bytes(const core::ResolvedMatrix& matrix) { return matrix.cols / 2; }
inline int64_t copied_row_bytes(const core::ResolvedMatrix& matrix) {
  return round_up(row_bytes(matrix), kTmaAlignment);
}

// What the TMA unit cannot read wherever it begins: launch.hpp, Copies.
inline bool data_needs_copy(const core::ResolvedMatrix& matrix, int64_t batches) {
  const bool one_row = matrix.rows == 1, one_batch = batches == 1;
  return (!one_row && matrix.ld / 2 % kTmaAlignment != 0) ||
         (!one_batch && matrix.batch_stride / 2 % kTmaAlignment != 0);
}

inline bool scales_need_copy(const core::ResolvedMatrix& matrix, int64_t batches) {
  return matrix.scale_layout == ScaleLayout::kLinear || matrix.cols % kMmaK != 0 ||
         (batches > 1 && matrix.scale_batch_stride % kTmaAlignment != 0);
}

}  // namespace dualgemm::cuda::sm100a
