// What the kernels of the quantiser and of its inverse are told.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/device/divisor.hpp"

namespace dualgemm::cuda {

using WideType = OutputType;  // of x

enum class Factors : int32_t { kOne, kPerExpert, kPerRow, kFromPartials };

// Rows that exist: quantize.hpp, "RowGroupArrays". At most one of the pointers is not null.
struct GroupParams {
  const int32_t* expert_rows;
  const int32_t* expert_offsets;
  const int32_t* row_experts;
  uint32_t experts;
};

// A part of a tensor, at most 2^32 - 2^24 units of work: rows `row_begin` and so on of all batches'
// rows, one after the other.
struct TensorParams {
  uint8_t* x;  // only read by the quantiser, as the others are by its inverse
  int64_t x_row_bytes, x_batch_bytes;
  uint8_t* codes;
  int64_t code_row_bytes, code_batch_bytes;
  uint8_t* scales;
  int64_t scale_ld;  // linear: scales from row to row; 0: swizzled 128x4
  int64_t scale_batch_bytes;
  int64_t scale_rows;         // swizzled, of one batch: no scale lies beyond
  uint32_t scale_tile_cols;   // swizzled: tiles of four columns
  uint32_t scale_alignment;   // swizzled, of every tile: 16, 4 or 1
  uint32_t blocks;            // of 16 values in a row
  Divisor row_units;          // units of work in a row, those of padded columns among them
  Divisor rows;               // of a batch
  uint32_t row_begin, count;  // count: of rows
  GroupParams groups;
  Factors factors;
  const float* global_scale;
};

struct QuantizeParams {
  TensorParams tensor;
  float* found_scale;        // or null
  const uint32_t* partials;  // kFromPartials: bits of magnitudes, the largest of them counts
  uint32_t num_partials;
  uint32_t thread_rows;  // of one matrix: rows whose block a thread takes; divides 32
  // With a scale for each row: 1 << row_shift CTAs divide a row's blocks, all of them look at all.
  uint32_t row_shift;
};

// RowTransform: rows are transformed when they have been read.
struct TransformedParams {
  QuantizeParams quantize;
  uint32_t* partials;           // written by the search for the largest magnitude
  const float* column_factors;  // or null
  uint32_t hadamard;            // 0: none
  float factor;                 // of its sums
};

struct AmaxParams {
  TensorParams tensor;
  uint32_t* partials;  // one for each CTA
};

// One batch of scales: where scale (row, col) lies.
struct ScaleParams {
  int64_t ld;  // linear; 0: swizzled 128x4
  int64_t batch_bytes;
};
struct ConvertScalesParams {
  const uint8_t* src;
  uint8_t* dst;
  ScaleParams from, to;
  int64_t rows;
  uint32_t cols, tile_cols;
  Divisor tile_groups;  // of kConvertTiles tiles side by side
  Divisor tile_rows;
};

}  // namespace dualgemm::cuda
