// Operands as kernels get them that read them where they lie, at any alignment and stride.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

// The scales of an operand: one byte for 16 neighbours along k.
struct ScaleView {
  const uint8_t* bytes;
  int64_t ld;  // linear: bytes from row to row; swizzled 128x4: bytes from 128 rows to the next 128
  int64_t batch_bytes;
  bool swizzled;

  // Scale number 0 of row `row` of a batch.
  DUALGEMM_HOST_DEVICE const uint8_t* row(uint32_t batch, uint32_t row) const {
    const int64_t offset = swizzled ? row / 128 * ld + row % 32 * 16 + row % 128 / 32 * 4
                                    : static_cast<int64_t>(row) * ld;
    return bytes + batch * batch_bytes + offset;
  }
  // From there, scale number k16.
  DUALGEMM_HOST_DEVICE uint32_t place(uint32_t k16) const {
    return swizzled ? k16 / 4 * 512 + k16 % 4 : k16;
  }
};

struct OperandView {
  const uint8_t* rows;  // aligned to one element (codes: to a byte)
  int64_t row_bytes, batch_bytes;
  ScaleView scales;  // unused for an A of fp16 or bf16

  DUALGEMM_HOST_DEVICE const uint8_t* row(uint32_t batch, uint32_t row) const {
    return rows + batch * batch_bytes + static_cast<int64_t>(row) * row_bytes;
  }
};

}  // namespace dualgemm::cuda
