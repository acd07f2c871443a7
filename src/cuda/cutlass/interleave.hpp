// Gate and Up as one operand of a GEMM: 128 rows of each by turns. On any GPU.
#pragma once

#include <cstdint>

#include "cuda/cutlass/params.hpp"
#include "cuda/ptx/target.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda::gated {

// What one expert's weights become: `tiles` times 128 rows of Gate and 128 of Up, codes first, then
// the scales in tiles of 128 x 4. Rows beyond n and what lies beyond k are zero.
struct WeightLayout {
  int64_t tiles;       // of 128 columns of D
  int64_t row_bytes;   // k/2 rounded up to 16
  int64_t scale_cols;  // scale tiles side by side: of 64 along k
  DUALGEMM_HOST_DEVICE int64_t rows() const { return tiles * 2 * kHalfTile; }
  DUALGEMM_HOST_DEVICE int64_t code_bytes() const { return rows() * row_bytes; }
  DUALGEMM_HOST_DEVICE int64_t scale_bytes() const { return tiles * 2 * scale_cols * 512; }
  DUALGEMM_HOST_DEVICE int64_t bytes() const { return code_bytes() + scale_bytes(); }
};
WeightLayout weight_layout(int64_t n, int64_t k);

struct InterleaveParams {
  struct Source {
    const uint8_t* codes;  // any alignment
    int64_t row_bytes, batch_bytes;
    const uint8_t* scales;
    int64_t scale_ld;  // scales from row to row; 0: swizzled 128x4, whose padding is not read
    int64_t scale_batch_bytes;
  };
  Source gate, up;
  uint8_t* out;          // aligned to 16 bytes
  int64_t expert_bytes;  // of `out`, from one expert to the next: a multiple of 16
  WeightLayout layout;
  int64_t n, k, experts;
};

KernelLaunch interleave_launch(const InterleaveParams& params);

}  // namespace dualgemm::cuda::gated
