// The loops of the quantiser and of its inverse on the CPU, for any layout: blocks of 16 of the
// rows that there are, shared among the threads of a call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/quantize_problem.hpp"
#include "core/team.hpp"

namespace dualgemm::core {

// Where a tensor lies in both forms. Strides in bytes; nothing is assumed of alignment.
struct TensorPlaces {
  DataType x_type;
  int64_t x_row_bytes, x_batch_bytes;
  uint8_t* codes;  // only read by the inverse, and so are the scales
  int64_t code_row_bytes, code_batch_bytes;
  uint8_t* scales;
  ScaleMap map;
  int64_t scale_batch_bytes;
  int64_t blocks_per_row;
  const float* column_factors = nullptr;  // RowTransform, of no account to the inverse
  int64_t hadamard = 0;
};

// How many threads pay for so many blocks; requested 0: as many as there are.
Expected<int> threads_for_blocks(int requested, int64_t blocks);
int64_t blocks_of(const TensorPlaces& places, std::span<const RowRun> runs) noexcept;

// The largest magnitude of all rows as the bits of a float: infinity and NaN are the largest.
int32_t amax_bits(Team& team, const TensorPlaces& places, const void* x,
                  std::span<const RowRun> runs) noexcept;

// factors: what x is multiplied by, one for each expert, or one for all.
void quantize_runs(Team& team, const TensorPlaces& places, const void* x,
                   std::span<const RowRun> runs, bool four_over_six,
                   std::span<const float> factors) noexcept;

// Every row with a global scale of its own, which goes to found_scale[batch * rows_a_batch + row].
void quantize_rows(Team& team, const TensorPlaces& places, const void* x,
                   std::span<const RowRun> runs, bool four_over_six, float* found_scale,
                   int64_t rows_a_batch) noexcept;

// global_scale: one for each expert, or for each row (`rows_a_batch` > 0), or one for all.
void dequantize_runs(Team& team, const TensorPlaces& places, void* x, std::span<const RowRun> runs,
                     std::span<const float> global_scale, int64_t rows_a_batch) noexcept;

}  // namespace dualgemm::core
