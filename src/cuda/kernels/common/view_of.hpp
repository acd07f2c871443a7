// A problem's operands as views, and how they are aligned. For host code.
#pragma once

#include <cstdint>

#include "core/int_math.hpp"
#include "core/problem.hpp"
#include "cuda/kernels/common/operand_view.hpp"

namespace dualgemm::cuda {

inline OperandView view_of(const core::ResolvedMatrix& matrix, const void* rows,
                           const uint8_t* scales) {
  OperandView view{};
  view.rows = static_cast<const uint8_t*>(rows);
  view.row_bytes = core::bytes_of(matrix.type, matrix.ld);
  view.batch_bytes = core::bytes_of(matrix.type, matrix.batch_stride);
  if (matrix.type != DataType::kE2M1) return view;
  const bool swizzled = matrix.scale_layout == ScaleLayout::kSwizzled128x4;
  constexpr int64_t kScaleTileBytes = 512;  // 128 rows x 4 scales
  view.scales = {
      .bytes = scales,
      .ld = swizzled ? core::ceil_div(matrix.sf_cols, 4) * kScaleTileBytes : matrix.scale_ld,
      .batch_bytes = matrix.scale_batch_stride,
      .swizzled = swizzled};
  return view;
}

// An array whose rows and batches are so many bytes apart has all of them at multiples of `bytes`.
inline bool begins_at_multiples_of(int64_t bytes, const uint8_t* first, int64_t row,
                                   int64_t batch) {
  return (static_cast<int64_t>(reinterpret_cast<uintptr_t>(first)) | row | batch) % bytes == 0;
}
inline bool rows_begin_at_multiples_of(int64_t bytes, const OperandView& view) {
  return begins_at_multiples_of(bytes, view.rows, view.row_bytes, view.batch_bytes);
}
inline bool scales_begin_at_multiples_of(int64_t bytes, const ScaleView& view) {
  return begins_at_multiples_of(bytes, view.bytes, view.ld, view.batch_bytes);
}

}  // namespace dualgemm::cuda
