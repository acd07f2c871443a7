#include "core/problem.hpp"

namespace dualgemm::core {
namespace {

int64_t or_tight(int64_t value, int64_t tight) noexcept { return value == 0 ? tight : value; }

}  // namespace

ResolvedMatrix resolve(const Matrix& matrix, int64_t rows, int64_t cols) noexcept {
  ResolvedMatrix out{};
  out.type = matrix.type;
  out.rows = rows;
  out.cols = cols;
  out.ld = or_tight(matrix.ld, cols);
  out.batch_stride = or_tight(matrix.batch_stride, rows * out.ld);
  out.scale_layout = matrix.scale_layout;
  if (matrix.type != DataType::kE2M1) return out;
  out.sf_cols = cols / kSfVec;
  out.scale_ld = or_tight(matrix.scale_ld, out.sf_cols);
  out.scale_batch_stride =
      or_tight(matrix.scale_batch_stride, out.scale_map().required_span_size());
  return out;
}

int64_t bits_of(DataType type) noexcept {
  switch (type) {
    case DataType::kE2M1:
      return 4;
    case DataType::kF16:
      return 16;
    case DataType::kBF16:
      return 16;
    case DataType::kF32:
      return 32;
  }
  return 0;
}

int64_t bytes_of(DataType type, int64_t elements) noexcept {
  return type == DataType::kE2M1 ? elements / 2 : elements * (bits_of(type) / 8);
}

int64_t ResolvedMatrix::row_bytes() const noexcept { return bytes_of(type, ld); }

int64_t ResolvedMatrix::data_span_bytes(int64_t batches) const noexcept {
  if (rows == 0 || batches == 0) return 0;
  return bytes_of(type, (batches - 1) * batch_stride + (rows - 1) * ld + cols);
}

int64_t ResolvedMatrix::scale_span_bytes(int64_t batches) const noexcept {
  if (type != DataType::kE2M1 || rows == 0 || batches == 0) return 0;
  return (batches - 1) * scale_batch_stride + scale_map().required_span_size();
}

ResolvedProblem resolve(const Problem& problem) noexcept {
  return {problem,
          resolve(problem.a, rows_of_a(problem), problem.k),
          resolve(problem.gate, problem.n, problem.k),
          resolve(problem.up, problem.n, problem.k),
          resolve(problem.d, problem.m, columns_of_d(problem)),
          problem.act,
          or_tight(problem.bias_stride, problem.n)};
}

int64_t bias_span_bytes(const ResolvedProblem& problem) noexcept {
  const Problem& p = problem.problem;
  return ((p.l - 1) * problem.bias_stride + p.n) * bytes_of(p.bias);
}

bool RowGroups::next_run(RowGroup& group) noexcept {
  const int32_t* const experts = buffers_.row_experts;
  const auto computed = [&](int64_t row) { return experts[row] >= 0 && experts[row] < problem_.l; };
  while (next_row_ < problem_.m && !computed(next_row_)) ++next_row_;
  if (next_row_ >= problem_.m) return false;
  const int64_t begin = next_row_;
  while (next_row_ < problem_.m && experts[next_row_] == experts[begin]) ++next_row_;
  group = {experts[begin], begin, next_row_ - begin, 0, begin, begin};
  return true;
}

bool RowGroups::next(RowGroup& group) noexcept {
  if (buffers_.row_experts != nullptr) return next_run(group);
  if (next_batch_ >= problem_.l) return false;
  const int64_t batch = next_batch_++;
  if (problem_.grouping != Grouping::kContiguous) {
    const bool masked = problem_.grouping == Grouping::kMasked;
    const int64_t rows = masked ? buffers_.expert_rows[batch] : problem_.m;
    group = {batch, 0, rows, batch, 0, 0};
    return true;
  }
  const int64_t begin = buffers_.expert_offsets[batch];
  const int64_t rows = buffers_.expert_offsets[batch + 1] - begin;
  const auto sf_begin = [&](const Matrix& matrix) {
    return matrix.scale_layout == ScaleLayout::kSwizzled128x4 ? padded_rows_ : begin;
  };
  group = {batch, begin, rows, 0, sf_begin(problem_.a), sf_begin(problem_.d)};
  padded_rows_ += round_up_rows(rows);
  return true;
}

double flops(const Problem& problem) noexcept {
  const double batches =
      problem.grouping == Grouping::kContiguous ? 1.0 : static_cast<double>(problem.l);
  return 4.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
         static_cast<double>(problem.k) * batches;
}

}  // namespace dualgemm::core
