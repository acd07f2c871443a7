#include "core/scale_padding.hpp"

namespace dualgemm::core {

void clear_scale_padding(const ResolvedProblem& problem, const Buffers& buffers) noexcept {
  const ResolvedMatrix& d = problem.d;
  if (d.type != DataType::kE2M1 || d.scale_layout != ScaleLayout::kSwizzled128x4) return;
  const bool contiguous = problem.problem.grouping == Grouping::kContiguous;
  const int64_t padded_cols = (d.sf_cols + 3) / 4 * 4;
  const ScaleMap map = d.scale_map();
  RowGroups groups(problem.problem, buffers);
  for (RowGroup group; groups.next(group);) {
    uint8_t* scales = buffers.d_scales + group.a_batch * d.scale_batch_stride;
    const int64_t rows = contiguous ? group.rows : problem.problem.m;
    const int64_t begin = group.d_sf_row_begin, end = begin + round_up_rows(rows);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row < begin + rows ? d.sf_cols : 0;
      for (int64_t col = first; col < padded_cols; ++col) scales[map(row, col)] = 0;
    }
  }
}

}  // namespace dualgemm::core
