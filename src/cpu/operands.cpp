#include "cpu/operands.hpp"

#include "core/int_math.hpp"

namespace dualgemm::cpu {
namespace {

struct ScaleStrides {
  int64_t row, group;
};
// Inside one panel or row tile; see ActivationSource.
ScaleStrides scale_strides(const ScaleMap& map) noexcept {
  if (map.layout() == ScaleLayout::kLinear) return {map.ld(), kGroupBlocks};
  return {16, 512};
}

}  // namespace

PanelSource Weights::panel(int64_t index) const noexcept {
  PanelSource source;
  source.blocks = blocks;
  if (packed != nullptr) {
    source.packed = packed + index * packed_panel_bytes(blocks);
    return source;
  }
  const int64_t row = index * kPanelN;
  const ScaleStrides strides = scale_strides(scale_map);
  source.codes = codes + row * row_bytes;
  source.row_bytes = row_bytes;
  source.scales = scales + scale_map(row, 0);
  source.scale_row_stride = strides.row;
  source.scale_group_stride = strides.group;
  source.cols = static_cast<int>(n - row < kPanelN ? n - row : kPanelN);
  return source;
}

Weights weights_of(const core::ResolvedMatrix& matrix, const void* codes, const uint8_t* scales,
                   int64_t batch) noexcept {
  Weights weights;
  weights.codes =
      static_cast<const uint8_t*>(codes) + core::bytes_of(matrix.type, batch * matrix.batch_stride);
  weights.row_bytes = matrix.row_bytes();
  weights.scales = scales + batch * matrix.scale_batch_stride;
  weights.scale_map = matrix.scale_map();
  weights.n = matrix.rows;
  weights.blocks = matrix.sf_cols;
  return weights;
}

int64_t packed_panel_bytes(int64_t blocks) noexcept {
  return (blocks + kGroupBlocks - 1) / kGroupBlocks * kPackedGroupBytes;
}

int64_t packed_matrix_bytes(int64_t n, int64_t blocks) noexcept {
  return (n + kPanelN - 1) / kPanelN * packed_panel_bytes(blocks);
}

ActivationSource activation_of(const core::ResolvedProblem& problem, const Buffers& buffers,
                               const core::RowGroup& group, int64_t row) noexcept {
  const core::ResolvedMatrix& a = problem.a;
  ActivationSource source;
  source.type = a.type;
  source.row_bytes = a.row_bytes();
  source.blocks = problem.problem.k / kSfVec;
  const bool indexed = buffers.a_row_index != nullptr;
  if (indexed) source.index = buffers.a_row_index + group.row_begin + row;
  source.data = static_cast<const uint8_t*>(buffers.a) +
                core::bytes_of(a.type, group.a_batch * a.batch_stride) +
                (indexed ? source.index[0] : group.row_begin + row) * source.row_bytes;
  if (a.type == DataType::kE2M1) {
    const ScaleMap map = a.scale_map();
    const ScaleStrides strides = scale_strides(map);
    const int64_t first = indexed ? source.index[0] : group.sf_row_begin + row;
    source.scales = buffers.a_scales + group.a_batch * a.scale_batch_stride + map(first, 0);
    source.scale_row_stride = strides.row;
    if (map.layout() == ScaleLayout::kSwizzled128x4) {
      source.scale_tile_stride = core::ceil_div(a.sf_cols, kGroupBlocks) * strides.group;
      source.scale_tile_row = static_cast<int>(indexed ? first : first % 128);
    }
    source.scale_group_stride = strides.group;
  }
  return source;
}

}  // namespace dualgemm::cpu
