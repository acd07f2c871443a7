#include "tools/checkpoint_jobs/quantization_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/problem.hpp"
#include "dualgemm/formats.hpp"
#include "tools/measure/parallel_for.hpp"

namespace dualgemm::checkpoint {
namespace {

struct RowSums {
  double error_squared = 0.0, x_squared = 0.0, error_abs = 0.0, max_abs = 0.0, amax = 0.0;
  int64_t clipped = 0, became_zero = 0, zero_blocks = 0;
};

float load(const void* x, DataType type, int64_t index) noexcept {
  if (type == DataType::kF32) return static_cast<const float*>(x)[index];
  const uint16_t bits = static_cast<const uint16_t*>(x)[index];
  return type == DataType::kF16 ? decode_f16(bits) : decode_bf16(bits);
}

void add_block(const void* x, DataType type, int64_t begin, const uint8_t* codes,
               uint8_t scale_bits, float global_scale, RowSums& sums) noexcept {
  const double scale = static_cast<double>(decode_scale(scale_bits)) * global_scale;
  bool all_zero = true;
  for (int64_t i = 0; i < kSfVec; ++i) {
    const double value = load(x, type, begin + i);
    const double quantised = decode_e2m1(static_cast<uint8_t>(codes[i / 2] >> (i % 2 * 4))) * scale;
    const double error = std::abs(quantised - value);
    sums.error_squared += error * error;
    sums.error_abs += error;
    sums.x_squared += value * value;
    sums.max_abs = std::max(sums.max_abs, error);
    sums.amax = std::max(sums.amax, std::abs(value));
    sums.clipped += std::abs(value) > 6.0 * scale && scale != 0.0;
    sums.became_zero += quantised == 0.0 && value != 0.0;
    all_zero = all_zero && value == 0.0;
  }
  sums.zero_blocks += scale == 0.0 && !all_zero;
}

QuantizationError finish(const std::vector<RowSums>& rows, int64_t values) noexcept {
  QuantizationError result;
  result.values = values;
  double error_squared = 0.0, x_squared = 0.0, error_abs = 0.0;
  for (const RowSums& row : rows) {  // in row order: no dependence on threads
    error_squared += row.error_squared;
    x_squared += row.x_squared;
    error_abs += row.error_abs;
    result.max_abs = std::max(result.max_abs, row.max_abs);
    result.amax = std::max(result.amax, row.amax);
    result.clipped += row.clipped;
    result.became_zero += row.became_zero;
    result.zero_blocks += row.zero_blocks;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  result.rel_l2 = error_squared == 0.0
                      ? 0.0
                      : (x_squared == 0.0 ? infinity : std::sqrt(error_squared / x_squared));
  result.snr_db = result.rel_l2 == 0.0 ? infinity : -20.0 * std::log10(result.rel_l2);
  result.mean_abs = values == 0 ? 0.0 : error_abs / static_cast<double>(values);
  return result;
}

}  // namespace

Expected<QuantizationError> quantization_error(const void* x, DataType x_type, int64_t rows,
                                               int64_t cols, int64_t ldx, const uint8_t* codes,
                                               const uint8_t* scales, ScaleLayout layout,
                                               float global_scale, int threads) {
  if (x_type == DataType::kE2M1)
    return Status::invalid("x_type", name_of(x_type), "must be f16, bf16 or f32");
  if (rows < 0) return Status::invalid("rows", std::to_string(rows), "must be >= 0");
  if (cols < 0 || cols % kSfVec != 0)
    return Status::invalid("cols", std::to_string(cols), "must be a multiple of 16, >= 0");
  if (ldx != 0 && ldx < cols)
    return Status::invalid("ldx", std::to_string(ldx), "must be 0 or at least cols");
  int64_t values = 0;
  if (__builtin_mul_overflow(rows, std::max(ldx, cols), &values)) {
    return Status::error(StatusCode::kOverflow, "rows * ldx", std::to_string(rows),
                         "must fit in 64 bits");
  }
  const Expected<int64_t> span = checked_scale_span(layout, rows, cols / kSfVec);
  if (!span) return span.status();

  const ScaleMap map(layout, rows, cols / kSfVec);
  const int64_t ld = ldx == 0 ? cols : ldx;
  std::vector<RowSums> sums(static_cast<size_t>(rows));
  const auto add_row = [&](int64_t row) {
    for (int64_t col = 0; col < cols; col += kSfVec) {
      add_block(x, x_type, row * ld + col, codes + (row * cols + col) / 2,
                scales[map(row, col / kSfVec)], global_scale, sums[static_cast<size_t>(row)]);
    }
  };
  measure::parallel_for(rows, add_row, threads);
  return finish(sums, rows * cols);
}

}  // namespace dualgemm::checkpoint
