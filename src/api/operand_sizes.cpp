#include "core/checked_problem.hpp"
#include "core/scale_padding.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm {
namespace {

// Bytes of the scales of A or D. Contiguous groups in the swizzled layout start every expert at a
// new 128-row tile: the most tiles come from one row in as many experts as possible and the rest in
// one. That is also enough for row_experts, whose scales are those of one matrix.
int64_t token_scale_bytes(const Problem& problem, const core::ResolvedMatrix& matrix,
                          bool one_matrix = false) {
  const bool contiguous = problem.grouping == Grouping::kContiguous;
  if (!contiguous || one_matrix || matrix.scale_layout != ScaleLayout::kSwizzled128x4) {
    return matrix.scale_span_bytes(contiguous ? 1 : problem.l);
  }
  if (matrix.type != DataType::kE2M1) return 0;
  const int64_t rows = core::most_padded_rows(problem.m, problem.l);
  return ScaleMap(matrix.scale_layout, rows, matrix.sf_cols).required_span_size();
}

}  // namespace

Expected<OperandSizes> operand_sizes(const Problem& problem) {
  const Expected<core::CheckedProblem> checked = core::CheckedProblem::of(problem);
  if (!checked) return checked.status();
  const core::ResolvedProblem& resolved = checked->resolved();
  const int64_t token_batches = problem.grouping == Grouping::kContiguous ? 1 : problem.l;
  OperandSizes sizes;
  sizes.a = resolved.a.data_span_bytes(token_batches);
  sizes.a_scales = token_scale_bytes(problem, resolved.a, problem.a_rows > 0);
  sizes.gate = resolved.gate.data_span_bytes(problem.l);
  sizes.gate_scales = resolved.gate.scale_span_bytes(problem.l);
  sizes.up = resolved.up.data_span_bytes(problem.l);
  sizes.up_scales = resolved.up.scale_span_bytes(problem.l);
  sizes.d = resolved.d.data_span_bytes(token_batches);
  sizes.d_scales = token_scale_bytes(problem, resolved.d);
  sizes.a_row_scale = token_batches * problem.m * static_cast<int64_t>(sizeof(float));
  sizes.bias_gate = sizes.bias_up = core::bias_span_bytes(resolved);
  return sizes;
}

}  // namespace dualgemm
