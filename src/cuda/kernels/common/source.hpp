// Where a kernel finds an operand of the caller: any alignment, any strides, both scale layouts.
#pragma once

#include <cstdint>

namespace dualgemm::cuda {

struct Nvfp4Source {
  const uint8_t* codes;  // two a byte, low nibble = even column
  const uint8_t* scales;
  int64_t row_bytes, batch_bytes;  // from one to the next
  int64_t scale_ld;                // linear: scales from row to row; 0: swizzled 128x4
  int64_t scale_batch_bytes;
};

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
