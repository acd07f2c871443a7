// Where a kernel finds an operand of the caller: any alignment, any strides, both scale layouts.
#pragma once

#include <cstdint>

#include "core/problem.hpp"

namespace dualgemm::cuda {

struct Nvfp4Source {
  const uint8_t* codes;  // two a byte, low nibble = even column
  const uint8_t* scales;
  int64_t row_bytes, batch_bytes;  // from one to the next
  int64_t scale_ld;                // linear: scales from row to row; 0: swizzled 128x4
  int64_t scale_batch_bytes;
};

inline Nvfp4Source nvfp4_source(const core::ResolvedMatrix& matrix, const void* codes,
                                const uint8_t* scales) noexcept {
  const bool linear = matrix.scale_layout == ScaleLayout::kLinear;
  return {.codes = static_cast<const uint8_t*>(codes),
          .scales = scales,
          .row_bytes = matrix.row_bytes(),
          .batch_bytes = core::bytes_of(matrix.type, matrix.batch_stride),
          .scale_ld = linear ? matrix.scale_ld : 0,
          .scale_batch_bytes = matrix.scale_batch_stride};
}

// fp16 or bf16.
struct HalfSource {
  const uint8_t* values;
  int64_t row_bytes, batch_bytes;
};

// rows x cols of each batch; the result has out_rows >= rows, the rows beyond are zero.
struct SourceExtent {
  int64_t rows, out_rows, batches;
  int64_t cols;  // a multiple of 16
};

}  // namespace dualgemm::cuda
