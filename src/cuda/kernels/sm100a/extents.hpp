// Sizes that follow from a problem, shared by the choice of an instance and the launch.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cuda/kernels/sm100a/config.hpp"

namespace dualgemm::cuda::sm100a {

inline constexpr int64_t kTmaAlignment = 16;  // of a tensor map's address and strides, in bytes

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

inline int64_t num_ctas(const Problem& p, int64_t tile_n) {
  return ceil_div(p.m, kTileM) * ceil_div(p.n, tile_n) * p.l;
}

inline int64_t row_bytes(const core::ResolvedMatrix& matrix) { return matrix.cols / 2; }
inline int64_t copied_row_bytes(const core::ResolvedMatrix& matrix) {
  return round_up(row_bytes(matrix), kTmaAlignment);
}

}  // namespace dualgemm::cuda::sm100a
