#include "core/scale_padding.hpp"

namespace dualgemm::core {
namespace {

// Columns `first` and on of rows begin .. end-1.
void clear_columns(const ScaleMap& map, uint8_t* scales, int64_t begin, int64_t end,
                   int64_t first) noexcept {
  const int64_t padded_cols = (map.cols() + 3) / 4 * 4;
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t col = first; col < padded_cols; ++col) scales[map(row, col)] = 0;
  }
}

// From row `begin` on up to the end of its 128.
void clear_rows(const ScaleMap& map, uint8_t* scales, int64_t begin) noexcept {
  clear_columns(map, scales, begin, round_up_rows(begin), 0);
}

}  // namespace

void clear_tile_padding(const ScaleMap& map, uint8_t* scales, int64_t begin,
                        int64_t rows) noexcept {
  clear_columns(map, scales, begin, begin + rows, map.cols());
  clear_rows(map, scales, begin + rows);
}

void clear_scale_padding(const ResolvedProblem& problem, const Buffers& buffers) noexcept {
  const ResolvedMatrix& d = problem.d;
  if (d.type != DataType::kE2M1 || d.scale_layout != ScaleLayout::kSwizzled128x4) return;
  const ScaleMap map = d.scale_map();
  const int64_t m = problem.problem.m;
  const bool one_matrix = buffers.row_experts != nullptr;
  const bool padded = problem.problem.grouping == Grouping::kContiguous && !one_matrix;
  RowGroups groups(problem.problem, buffers);
  for (RowGroup group; groups.next(group);) {
    if (group.rows == 0) continue;
    uint8_t* const scales = buffers.d_scales + group.a_batch * d.scale_batch_stride;
    const int64_t end = group.d_sf_row_begin + group.rows;
    clear_columns(map, scales, group.d_sf_row_begin, end, map.cols());
    clear_rows(map, scales, padded ? end : m);
  }
}

}  // namespace dualgemm::core
