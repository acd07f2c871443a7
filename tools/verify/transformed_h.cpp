#include "tools/verify/transformed_h.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/quantize_block.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm::verify {
namespace {

using reference::Interval;

// `value` as it is stored, and how far from it anything from low to high may be.
void store(DataType type, double exact, double low, double high, double& value, double& moved) {
  value = rounded_to(type, exact);
  if (!std::isfinite(exact)) return;
  const double far = std::max(rounded_to(type, high) - value, value - rounded_to(type, low));
  moved = std::isnan(far) ? HUGE_VAL : far;
}

void multiply_columns(const float* factors, DataType type, StoredH& h) {
  for (size_t i = 0; i < h.value.size(); ++i) {
    const double factor = factors[i % static_cast<size_t>(h.cols)];
    const double exact = h.value[i] * factor, far = h.moved[i] * std::abs(factor);
    store(type, exact, exact - far, exact + far, h.value[i], h.moved[i]);
  }
}

// `size` values, which lie side by side.
void multiply_by_hadamard(int64_t size, DataType type, double* values, double* moved) {
  double magnitude = 0.0, far = 0.0;
  const std::vector<double> x(values, values + size);
  for (int64_t i = 0; i < size; ++i) {
    magnitude += std::abs(x[static_cast<size_t>(i)]) + moved[i];
    far += moved[i];
  }
  const double root = std::sqrt(static_cast<double>(size));
  // One rounding to FP32 an addition, one of 1 / root and one of the product.
  far += (std::log2(static_cast<double>(size)) + 3.0) * 0x1p-24 * magnitude + 0x1p-149;
  for (int64_t i = 0; i < size; ++i) {
    double sum = 0.0;
    for (int64_t k = 0; k < size; ++k) {
      const bool minus = std::popcount(static_cast<uint64_t>(i & k)) % 2 != 0;
      sum += minus ? -x[static_cast<size_t>(k)] : x[static_cast<size_t>(k)];
    }
    store(type, sum / root, (sum - far) / root, (sum + far) / root, values[i], moved[i]);
  }
}

core::GlobalScale global_of(double amax) {
  return core::global_scale_of_amax(static_cast<float>(amax));
}

void quantize_row(StoredH& h, int64_t row) {
  double* const value = &h.value[static_cast<size_t>(row * h.cols)];
  double* const moved = &h.moved[static_cast<size_t>(row * h.cols)];
  std::vector<double> exact(value, value + h.cols);
  std::vector<Interval> intervals;
  double least = 0.0, amax = 0.0, most = 0.0;
  for (int64_t i = 0; i < h.cols; ++i) {
    intervals.push_back(
        {static_cast<float>(value[i] - moved[i]), static_cast<float>(value[i] + moved[i])});
    const double magnitude = std::abs(value[i]);
    amax = std::isnan(magnitude) || std::isnan(amax) ? NAN : std::max(amax, magnitude);
    least = std::max(least, magnitude - moved[i]);
    most = std::max(most, magnitude + moved[i]);
  }
  const bool is_known = std::isfinite(most) && (least > 0.0 || most == 0.0);
  if (!std::isfinite(amax) || !is_known) {
    // NaN or an infinity makes the row NaN; a row that may be all zeros has any scale.
    const bool is_nan = !std::isfinite(amax);
    std::fill(value, value + h.cols, is_nan ? NAN : 0.0);
    std::fill(moved, moved + h.cols, is_nan ? 0.0 : HUGE_VAL);
    return;
  }
  const GlobalRange global{global_of(least), global_of(amax), global_of(most)};
  h.row_scales[static_cast<size_t>(row)] = global.global.dequantize;
  for (int64_t i = 0; i < h.cols; i += kSfVec) {
    std::fill(moved + i, moved + i + kSfVec, 0.0);
    store_block(&exact[static_cast<size_t>(i)], &intervals[static_cast<size_t>(i)], global,
                value + i, moved + i, &h.scales[static_cast<size_t>((row * h.cols + i) / kSfVec)]);
  }
}

}  // namespace

void transform_h(const RowTransform& transform, const float* factors, DataType type, StoredH& h) {
  if (transform.factors) multiply_columns(factors, type, h);
  if (transform.hadamard == 0) return;
  for (int64_t i = 0; i < h.rows * h.cols; i += transform.hadamard) {
    const auto at = static_cast<size_t>(i);
    multiply_by_hadamard(transform.hadamard, type, &h.value[at], &h.moved[at]);
  }
}

void quantize_rows_of_h(StoredH& h) {
  h.row_scales.assign(static_cast<size_t>(h.rows), 1.0);
  h.scales.assign(h.value.size() / kSfVec, 0.0);
  for (int64_t row = 0; row < h.rows; ++row) quantize_row(h, row);
}

}  // namespace dualgemm::verify
