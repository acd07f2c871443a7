// Copies of operands in the layout that tensor copies need: rows at multiples of 16 bytes, scales
// in scale tiles of 512 bytes whose padding is zero. On any GPU.
#pragma once

#include <cstdint>

#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

// destination[batch][row][0 .. row_bytes) = source, then zeros up to the destination's row.
struct RepackRowsParams {
  const uint8_t* source;                         // any alignment
  uint8_t* destination;                          // aligned to 8 bytes; batches and rows tight
  int64_t source_row_bytes, source_batch_bytes;  // from one to the next
  int64_t row_bytes;                             // used ones, a multiple of 8
  int64_t destination_row_bytes;                 // a multiple of 8, at least row_bytes
  int64_t rows, batches;
};

// Scales of `rows` rows and `sf_cols` 16-blocks into the swizzled 128x4 layout, tight between
// batches. Scales of rows >= rows and of blocks >= sf_cols become 0, whatever the source holds
// there; its padding is not read.
struct RepackScalesParams {
  const uint8_t* source;
  uint8_t* destination;  // aligned to 4 bytes
  int64_t source_ld;     // linear source: scales from row to row; 0: swizzled 128x4
  int64_t source_batch_bytes;
  int64_t rows, sf_cols, batches;
};

KernelLaunch repack_rows_launch(const RepackRowsParams& params);
KernelLaunch repack_scales_launch(const RepackScalesParams& params);

// Of the destination.
int64_t swizzled_scale_bytes(int64_t rows, int64_t sf_cols);  // one batch, a multiple of 512

}  // namespace dualgemm::cuda
