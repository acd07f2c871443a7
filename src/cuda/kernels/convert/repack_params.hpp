// What the kernels of repack.hpp are told. Apart from it, whose headers nvcc would read.
#pragma once

#include <cstdint>

#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

inline constexpr int kRepackThreads = 128;  // few, so that a small copy has many SMs

// A warp's pieces of a copy: kRepackRowBytes of one row of bytes; or the scales of 128 rows and
// kRepackScaleCols columns, which are whole sectors where they lie in rows, and eight scale tiles.
inline constexpr int kRepackRowBytes = 1024;
inline constexpr int kRepackScaleCols = 32;

// destination[batch][row][0 .. row_bytes) = source, then zeros up to the destination's row.
struct RowCopy {
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
struct ScaleCopy {
  const uint8_t* source;  // any alignment
  uint8_t* destination;   // aligned to 16 bytes
  int64_t source_ld;      // linear source: scales from row to row; 0: swizzled 128x4
  int64_t source_batch_bytes;
  int64_t rows, sf_cols, batches;
};

// Those of all operands are one launch: the gaps between launches take longer than a copy does.
template <class Copy>
struct RepackParams {
  static constexpr int kMostCopies = 3;
  int64_t count;              // of copies
  int64_t ends[kMostCopies];  // of each copy's pieces, counted over all; a missing copy: the last's
  Copy copies[kMostCopies];
};
using RepackRowsParams = RepackParams<RowCopy>;
using RepackScalesParams = RepackParams<ScaleCopy>;

Kernel repack_rows_kernel();
Kernel repack_scales_kernel();

}  // namespace dualgemm::cuda
