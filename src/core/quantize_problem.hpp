// QuantizeProblem with every default resolved, its rules, and the rows that there are.
#pragma once

#include <cstdint>
#include <vector>

#include "core/memory_range.hpp"
#include "core/problem.hpp"
#include "dualgemm/quantize.hpp"

namespace dualgemm::core {

struct ResolvedQuantize {
  QuantizeProblem problem;
  ResolvedMatrix x, q;

  bool contiguous() const noexcept { return problem.grouping == Grouping::kContiguous; }
  // Matrices behind each other: 1 for contiguous groups.
  int64_t batches() const noexcept { return contiguous() ? 1 : problem.l; }
  bool swizzled() const noexcept { return q.scale_layout == ScaleLayout::kSwizzled128x4; }
};

// Precondition: validate(problem).ok().
ResolvedQuantize resolve(const QuantizeProblem& problem) noexcept;
// `workspace` is 0: that is the device's affair.
QuantizeSizes sizes_of(const ResolvedQuantize& problem) noexcept;

// Both directions' buffers in one form.
struct QuantizeArrays {
  MemoryRange x, codes, scales, global_scale, found_scale;
  MemoryRange expert_rows, expert_offsets, row_experts;
  MemoryRange column_factors;
  MemoryRange workspace;
};
QuantizeArrays arrays_of(const ResolvedQuantize& problem, const QuantizeBuffers& buffers,
                         int64_t workspace_bytes);
QuantizeArrays arrays_of(const ResolvedQuantize& problem, const DequantizeBuffers& buffers);

// Nulls, alignment, the outputs apart from all else. Reads nothing but addresses.
Status check_arrays(const ResolvedQuantize& problem, const QuantizeArrays& arrays, bool quantizes);

// What the arrays hold, where the host can read it: numbers of rows, given global scales.
// Precondition: check_arrays().
Status check_groups(const ResolvedQuantize& problem, const RowGroupArrays& groups);
Status check_given_scales(const ResolvedQuantize& problem, const float* global_scale);

// Neighbouring rows that share a global scale, and whose scales lie side by side.
struct RowRun {
  int64_t batch;            // of x and q; 0 for contiguous groups
  int64_t row;              // the first, inside the batch
  int64_t rows;             // at least 1
  int64_t expert;           // or batch: whose given scale it is
  int64_t scale_row;        // the first, inside the batch's scales
  int64_t rows_before = 0;  // in all runs before this one
};
// All rows that there are. Precondition: check_groups().
std::vector<RowRun> row_runs(const ResolvedQuantize& problem, const RowGroupArrays& groups);

// Scales of one batch or expert whose swizzled tiles have padding: `rows` rows from a tile on.
struct TileRows {
  int64_t batch, scale_row, rows;
};
std::vector<TileRows> tile_rows(const ResolvedQuantize& problem, const RowGroupArrays& groups);

// What the CPU does with it. Preconditions: all of the above.
Status quantize_on_cpu(const ResolvedQuantize& problem, const QuantizeBuffers& buffers,
                       int threads);
Status dequantize_on_cpu(const ResolvedQuantize& problem, const DequantizeBuffers& buffers,
                         int threads);

// The rules of a conversion; ld and strides of 0 resolved.
struct ResolvedConversion {
  ScaleMap from, to;
  int64_t batches, from_stride, to_stride;
  int64_t from_bytes, to_bytes;  // of all batches
};
Expected<ResolvedConversion> checked_conversion(const ScaleConversion& conversion);
Status check_arrays(const ResolvedConversion& conversion, const uint8_t* src, const uint8_t* dst);
void convert_scales_on_cpu(const ResolvedConversion& conversion, const uint8_t* src,
                           uint8_t* dst) noexcept;

}  // namespace dualgemm::core
