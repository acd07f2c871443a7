#include "cuda/kernels/convert/tma_operand.hpp"

#include <string>

#include "cuda/kernels/convert/repack.hpp"

namespace dualgemm::cuda {
namespace {

constexpr uint32_t kBoxBytes = 128;  // of one row of a stage, one swizzle atom wide

int64_t batch_bytes(const core::ResolvedMatrix& matrix) {
  return core::bytes_of(matrix.type, matrix.batch_stride);
}

}  // namespace

bool data_needs_copy(const core::ResolvedMatrix& matrix, int64_t batches) {
  return (matrix.rows > 1 && matrix.row_bytes() % kTmaAlignment != 0) ||
         (batches > 1 && batch_bytes(matrix) % kTmaAlignment != 0);
}

bool linear_scales_suit(const core::ResolvedMatrix& matrix, int64_t batches) {
  return matrix.scale_layout == ScaleLayout::kLinear &&
         (matrix.rows == 1 || matrix.scale_ld % kTmaAlignment == 0) &&
         (batches == 1 || matrix.scale_batch_stride % kTmaAlignment == 0);
}

bool swizzled_scales_suit(const core::ResolvedMatrix& matrix, int64_t batches) {
  return matrix.scale_layout == ScaleLayout::kSwizzled128x4 && matrix.cols % 64 == 0 &&
         (batches == 1 || matrix.scale_batch_stride % kTmaAlignment == 0);
}

bool is_tma_aligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % kTmaAlignment == 0;
}

TensorView data_view(const TmaOperand& operand, int64_t batches, int64_t box_rows,
                     const uint8_t* workspace) {
  const core::ResolvedMatrix& matrix = *operand.matrix;
  const bool copied = operand.data_copy != kNoCopy;
  // A stride that is never used must be legal all the same.
  const int64_t row_stride =
      copied || matrix.rows == 1 ? copied_row_bytes(matrix) : matrix.row_bytes();
  const int64_t batch_stride =
      copied || batches == 1 ? row_stride * matrix.rows : batch_bytes(matrix);
  return {.name = operand.name,
          .type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
          .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
          .rank = 3,
          .address = copied ? workspace + operand.data_copy : operand.data,
          .dims = {static_cast<uint64_t>(core::bytes_of(matrix.type, matrix.cols)),
                   static_cast<uint64_t>(matrix.rows), static_cast<uint64_t>(batches)},
          .stride_bytes = {static_cast<uint64_t>(row_stride), static_cast<uint64_t>(batch_stride)},
          .box = {kBoxBytes, static_cast<uint32_t>(box_rows), 1}};
}

TensorView linear_scale_view(const TmaOperand& operand, int64_t batches, int64_t box_cols,
                             int64_t box_rows) {
  const core::ResolvedMatrix& matrix = *operand.matrix;
  const int64_t row_stride =
      matrix.rows == 1 ? core::round_up(matrix.sf_cols, kTmaAlignment) : matrix.scale_ld;
  const int64_t batch_stride = batches == 1 ? row_stride * matrix.rows : matrix.scale_batch_stride;
  return {.name = operand.scales_name,
          .type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
          .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
          .rank = 3,
          .address = operand.scales,
          .dims = {static_cast<uint64_t>(matrix.sf_cols), static_cast<uint64_t>(matrix.rows),
                   static_cast<uint64_t>(batches)},
          .stride_bytes = {static_cast<uint64_t>(row_stride), static_cast<uint64_t>(batch_stride)},
          .box = {static_cast<uint32_t>(box_cols), static_cast<uint32_t>(box_rows), 1}};
}

TensorView swizzled_scale_view(const TmaOperand& operand, int64_t batches, const ScaleTileBox& box,
                               const uint8_t* workspace) {
  const core::ResolvedMatrix& matrix = *operand.matrix;
  const bool copied = operand.scale_copy != kNoCopy;
  const int64_t tile_cols = core::ceil_div(matrix.cols, 64),
                tile_rows = core::ceil_div(scale_rows_of(operand), 128);
  const int64_t row_stride = tile_cols * kTmaScaleTileBytes;
  const int64_t batch_stride =
      copied || batches == 1 ? tile_rows * row_stride : matrix.scale_batch_stride;
  return {.name = operand.scales_name,
          .type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
          .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
          .rank = 4,
          .address = copied ? workspace + operand.scale_copy : operand.scales,
          .dims = {kTmaScaleTileBytes / 2, static_cast<uint64_t>(tile_cols),
                   static_cast<uint64_t>(tile_rows), static_cast<uint64_t>(batches)},
          .stride_bytes = {kTmaScaleTileBytes, static_cast<uint64_t>(row_stride),
                           static_cast<uint64_t>(batch_stride)},
          .box = {kTmaScaleTileBytes / 2, static_cast<uint32_t>(box.along_k),
                  static_cast<uint32_t>(box.along_rows), 1}};
}

Status settle_copy(const char* name, const void* data, bool needs_copy, int64_t* copy) {
  const bool needed = needs_copy || !is_tma_aligned(data);
  if (!needed) *copy = kNoCopy;
  if (!needed || *copy != kNoCopy) return {};
  return Status::unsupported(
      name, "address % 16 = " + std::to_string(reinterpret_cast<uintptr_t>(data) % kTmaAlignment),
      "must be aligned to 16 bytes, or planned for with PlanOptions::unaligned");
}

void add_copies(const TmaOperand& operand, int64_t batches, uint8_t* workspace,
                std::vector<KernelLaunch>& launches) {
  const core::ResolvedMatrix& matrix = *operand.matrix;
  if (operand.data_copy != kNoCopy) {
    add_repack_rows({.source = static_cast<const uint8_t*>(operand.data),
                     .destination = workspace + operand.data_copy,
                     .source_row_bytes = matrix.row_bytes(),
                     .source_batch_bytes = batch_bytes(matrix),
                     .row_bytes = core::bytes_of(matrix.type, matrix.cols),
                     .destination_row_bytes = copied_row_bytes(matrix),
                     .rows = matrix.rows,
                     .batches = batches},
                    launches);
  }
  if (operand.scale_copy != kNoCopy) {
    const bool linear = matrix.scale_layout == ScaleLayout::kLinear;
    add_repack_scales({.source = operand.scales,
                       .destination = workspace + operand.scale_copy,
                       .source_ld = linear ? matrix.scale_ld : 0,
                       .source_batch_bytes = matrix.scale_batch_stride,
                       .rows = scale_rows_of(operand),
                       .sf_cols = matrix.sf_cols,
                       .batches = batches},
                      launches);
  }
}

}  // namespace dualgemm::cuda
