// An operand that the TMA unit reads, NVFP4 or 16-bit numbers: where it lies, what it must be
// copied for, its views.
#pragma once

#include <cstdint>
#include <vector>

#include "core/int_math.hpp"
#include "core/problem.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"

namespace dualgemm::cuda {

inline constexpr int64_t kTmaAlignment = 16;  // of a tensor map's address and strides, in bytes
inline constexpr int64_t kNoCopy = -1;        // instead of an offset: read where it lies
// A scale tile of the swizzled layout: 128 rows x 4 scales, so 64 elements along k.
inline constexpr int64_t kTmaScaleTileBytes = 512;

// One operand with its scales (16-bit numbers: none), and where the kernel reads them.
struct TmaOperand {
  const char* name;
  const char* scales_name;
  const core::ResolvedMatrix* matrix;
  const void* data;
  const uint8_t* scales;
  int64_t data_copy, scale_copy;  // offsets into the workspace, or kNoCopy
  int64_t scale_rows = 0;         // swizzled: if not 0, other than the matrix has
};

inline int64_t copied_row_bytes(const core::ResolvedMatrix& matrix) {
  return core::round_up(core::bytes_of(matrix.type, matrix.cols), kTmaAlignment);
}

// What the TMA unit cannot read wherever it begins: rows or batches that are no multiple of 16
// bytes apart.
bool data_needs_copy(const core::ResolvedMatrix& matrix, int64_t batches);
// Whether scales can be read in place: as rows of them, or as scale tiles. k % 64 != 0 leaves
// padding in a scale tile, which would be multiplied (0 * NaN is NaN).
bool linear_scales_suit(const core::ResolvedMatrix& matrix, int64_t batches);
bool swizzled_scales_suit(const core::ResolvedMatrix& matrix, int64_t batches);

// Rows of a batch's swizzled scales.
inline int64_t scale_rows_of(const TmaOperand& operand) {
  return operand.scale_rows != 0 ? operand.scale_rows : operand.matrix->rows;
}

bool is_tma_aligned(const void* data);

// Where an array is read: a planned copy that nothing demands is left out, a copy that is needed
// and was not planned is an error.
Status settle_copy(const char* name, const void* data, bool needs_copy, int64_t* copy);

// The copies that the operand has been settled on; repack.hpp says by which launches.
void add_copies(const TmaOperand& operand, int64_t batches, uint8_t* workspace,
                std::vector<KernelLaunch>& launches);

// Rows of bytes; a stage takes 128 neighbours of `box_rows` of them, swizzled.
TensorView data_view(const TmaOperand& operand, int64_t batches, int64_t box_rows,
                     const uint8_t* workspace);
// Rows of k/16 scales; a stage takes `box_cols` of `box_rows` of them.
TensorView linear_scale_view(const TmaOperand& operand, int64_t batches, int64_t box_cols,
                             int64_t box_rows);
// Scale tiles; a stage takes so many neighbours along k, and along the rows.
struct ScaleTileBox {
  int64_t along_k, along_rows = 1;
};
TensorView swizzled_scale_view(const TmaOperand& operand, int64_t batches, const ScaleTileBox& box,
                               const uint8_t* workspace);

}  // namespace dualgemm::cuda
