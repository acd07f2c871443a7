#include "core/row_transform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/int_math.hpp"
#include "core/problem.hpp"
#include "core/quantize_rows.hpp"
#include "core/validate.hpp"
#include "core/wide_block.hpp"

namespace dualgemm::core {
namespace {

static_assert(hadamard_factor(32) * hadamard_factor(32) * 32 > 0x1.fffffcp-1f &&
              hadamard_factor(128) * 2 == hadamard_factor(32));

// `size` sums and differences, in place: neighbours first, then those 2, 4, ... apart.
void add_up(float* values, int64_t size) noexcept {
  for (int64_t apart = 1; apart < size; apart *= 2) {
    for (int64_t begin = 0; begin < size; begin += 2 * apart) {
      for (int64_t i = begin; i < begin + apart; ++i) {
        const float low = values[i], high = values[i + apart];
        values[i] = low + high;
        values[i + apart] = low - high;
      }
    }
  }
}

template <DataType kType>
float rounded(float value) noexcept {
  if constexpr (kType == DataType::kF16) return decode_f16(encode_f16(value));
  if constexpr (kType == DataType::kBF16) return decode_bf16(encode_bf16(value));
  return value;
}

template <DataType kType>
void transform(const uint8_t* x, int64_t cols, const float* factors, int64_t hadamard,
               uint8_t* y) noexcept {
  const int64_t step = hadamard == 0 ? kSfVec : hadamard;
  const float factor = hadamard_factor(hadamard);
  float values[kMostHadamard];
  for (int64_t begin = 0; begin < cols; begin += step) {
    for (int64_t i = 0; i < step; i += kSfVec)
      load_block<kType>(x, (begin + i) / kSfVec, values + i);
    if (factors != nullptr) {
      for (int64_t i = 0; i < step; ++i) values[i] = rounded<kType>(values[i] * factors[begin + i]);
    }
    if (hadamard != 0) {
      add_up(values, hadamard);
      for (int64_t i = 0; i < step; ++i) values[i] *= factor;
    }
    for (int64_t i = 0; i < step; i += kSfVec)
      store_canonical<kType>(y, (begin + i) / kSfVec, values + i);
  }
}

}  // namespace

Status check_transform(const char* name, const RowTransform& transform, int64_t cols) {
  const int64_t size = transform.hadamard;
  const std::string where = std::string(name) + ".hadamard";
  if (size == 0) return {};
  if (size < kLeastHadamard || size > kMostHadamard ||
      !std::has_single_bit(static_cast<uint64_t>(size))) {
    return Status::invalid(where, std::to_string(size), "must be 0, 16, 32, 64, 128 or 256");
  }
  if (cols % size == 0) return {};
  return Status::invalid(where, std::to_string(size),
                         fmt::format("must divide the {} columns", cols));
}

Status check_problem(const TransformProblem& problem) {
  for (const auto& [name, value, least] :
       {std::tuple{"rows", problem.rows, int64_t{1}}, std::tuple{"cols", problem.cols, int64_t{16}},
        std::tuple{"l", problem.l, int64_t{1}}}) {
    if (value < least) {
      return Status::invalid(name, std::to_string(value),
                             "must be at least " + std::to_string(least));
    }
  }
  // The rules of x and its extents are the quantiser's.
  DUALGEMM_TRY(validate(QuantizeProblem{.rows = problem.rows,
                                        .cols = problem.cols,
                                        .l = problem.l,
                                        .x = problem.x,
                                        .transform = problem.transform}));
  if (problem.y.type != problem.x.type) {
    return Status::invalid("y.type", name_of(problem.y.type),
                           std::string("must be that of x, ") + name_of(problem.x.type));
  }
  return check_matrix("y", problem.y, problem.rows, problem.cols, problem.l, false);
}

Status check_arrays(const TransformProblem& problem, const TransformBuffers& buffers) {
  const ResolvedMatrix x = resolve(problem.x, problem.rows, problem.cols);
  const ResolvedMatrix y = resolve(problem.y, problem.rows, problem.cols);
  const bool factors = problem.transform.factors;
  const MemoryRange from{"x", buffers.x, x.data_span_bytes(problem.l), bytes_of(x.type, 1), true};
  const MemoryRange by{"column_factors", buffers.column_factors, problem.cols * 4, 4, factors};
  const MemoryRange to{"y", buffers.y, y.data_span_bytes(problem.l), bytes_of(y.type, 1), true};
  if (!factors) {
    DUALGEMM_TRY(check_absent("column_factors", buffers.column_factors,
                              "must be null: the problem's transform has no factors"));
  }
  for (const MemoryRange* range : {&from, &by, &to}) DUALGEMM_TRY(check_range(*range));
  DUALGEMM_TRY(check_apart(to, by));
  const bool alike = x.ld == y.ld && (problem.l == 1 || x.batch_stride == y.batch_stride);
  return buffers.x == buffers.y && alike ? Status() : check_apart(to, from);
}

void transform_row(DataType type, const uint8_t* x, int64_t cols, const float* factors,
                   int64_t hadamard, uint8_t* y) noexcept {
  with_wide_type(type, [&](auto known) { transform<known()>(x, cols, factors, hadamard, y); });
}

Status transform_rows_on_cpu(const TransformProblem& problem, const TransformBuffers& buffers,
                             int threads) {
  const ResolvedMatrix x = resolve(problem.x, problem.rows, problem.cols);
  const ResolvedMatrix y = resolve(problem.y, problem.rows, problem.cols);
  const int64_t rows = problem.l * problem.rows;
  const Expected<int> helpers = threads_for_blocks(threads, rows * (problem.cols / kSfVec));
  if (!helpers) return helpers.status();
  Team team(*helpers);
  const auto* const from = static_cast<const uint8_t*>(buffers.x);
  auto* const to = static_cast<uint8_t*>(buffers.y);
  const auto at = [&](const ResolvedMatrix& matrix, int64_t row) {
    return row / problem.rows * bytes_of(matrix.type, matrix.batch_stride) +
           row % problem.rows * matrix.row_bytes();
  };
  team.run(rows, [&](int64_t row, int) {
    transform_row(x.type, from + at(x, row), problem.cols, buffers.column_factors,
                  problem.transform.hadamard, to + at(y, row));
  });
  return {};
}

}  // namespace dualgemm::core
