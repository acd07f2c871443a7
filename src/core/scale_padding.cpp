#include "core/scale_padding.hpp"

namespace dualgemm::core {

void clear_tile_padding(const ScaleMap& map, uint8_t* scales, int64_t begin,
                        int64_t rows) noexcept {
  const int64_t padded_cols = (map.cols() + 3) / 4 * 4, end = begin + round_up_rows(rows);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = row < begin + rows ? map.cols() : 0;
    for (int64_t col = first; col < padded_cols; ++col) scales[map(row, col)] = 0;
  }
}

void clear_scale_padding(const ResolvedProblem& problem, const Buffers& buffers) noexcept {
  const ResolvedMatrix& d = problem.d;
  if (d.type != DataType::kE2M1 || d.scale_layout != ScaleLayout::kSwizzled128x4) return;
  if (buffers.row_experts != nullptr)  // one matrix, whatever its rows belong to
    return clear_tile_padding(d.scale_map(), buffers.d_scales, 0, problem.problem.m);
  const bool contiguous = problem.problem.grouping == Grouping::kContiguous;
  RowGroups groups(problem.problem, buffers);
  for (RowGroup group; groups.next(group);) {
    if (group.rows == 0) continue;
    clear_tile_padding(d.scale_map(), buffers.d_scales + group.a_batch * d.scale_batch_stride,
                       group.d_sf_row_begin, contiguous ? group.rows : problem.problem.m);
  }
}

}  // namespace dualgemm::core
