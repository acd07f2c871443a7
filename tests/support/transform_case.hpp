// RowTransform as its definition has it, one row at a time, and random problems of rows that are
// transformed and not quantised. Shares no code with the library but the rounding of types.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "dualgemm/quantize.hpp"
#include "support/inputs.hpp"
#include "support/quantize_case.hpp"

namespace dualgemm::test {

// x times [[H, H], [H, -H]] for the Hadamard matrix H of half the size.
inline std::vector<float> slow_hadamard(const std::vector<float>& x) {
  if (x.size() == 1) return x;
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  const std::vector<float> low = slow_hadamard({x.begin(), middle});
  const std::vector<float> high = slow_hadamard({middle, x.end()});
  std::vector<float> sums;
  for (size_t i = 0; i < low.size(); ++i) sums.push_back(low[i] + high[i]);
  for (size_t i = 0; i < low.size(); ++i) sums.push_back(low[i] - high[i]);
  return sums;
}

// A row of x in its type, transformed in place.
inline void slow_transform(DataType type, const RowTransform& transform, const float* factors,
                           int64_t cols, uint8_t* row) {
  const auto value = [&](int64_t col) { return load_element(row, type, col); };
  if (transform.factors) {
    for (int64_t col = 0; col < cols; ++col)
      store_element(row, type, col, value(col) * factors[col]);
  }
  if (transform.hadamard == 0) return;
  const auto factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(transform.hadamard)));
  for (int64_t begin = 0; begin < cols; begin += transform.hadamard) {
    std::vector<float> values;
    for (int64_t i = 0; i < transform.hadamard; ++i) values.push_back(value(begin + i));
    values = slow_hadamard(values);
    for (int64_t i = 0; i < transform.hadamard; ++i)
      store_element(row, type, begin + i, values[static_cast<size_t>(i)] * factor);
  }
}

// The quiet NaN without a sign for every NaN.
inline void make_nans_canonical(DataType type, int64_t count, uint8_t* values) {
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(load_element(values, type, i))) store_element(values, type, i, std::nanf(""));
  }
}

struct TransformCase {
  TransformProblem problem;
  core::ResolvedMatrix x, y;
  std::vector<uint8_t> from, to;
  std::vector<float> factors;

  TransformCase(const TransformProblem& p, Rng& rng, Hard hard)
      : problem(p),
        x(core::resolve(p.x, p.rows, p.cols)),
        y(core::resolve(p.y, p.rows, p.cols)),
        from(static_cast<size_t>(x.data_span_bytes(p.l)), kPoison),
        to(static_cast<size_t>(y.data_span_bytes(p.l)), kPoison) {
    for (int64_t row = 0; row < p.l * p.rows; ++row) {
      for (int64_t col = 0; col < p.cols; col += 16) {
        float block[16];
        hard_block(rng, hard, block);
        for (int i = 0; i < 16; ++i)
          store_element(from.data() + row_at(x, row), p.x.type, col + i, block[i]);
      }
    }
    for (int64_t col = 0; p.transform.factors && col < p.cols; ++col)
      factors.push_back(rng.uniform(-2.0f, 2.0f));
  }

  int64_t row_at(const core::ResolvedMatrix& matrix, int64_t row) const {
    return row / problem.rows * core::bytes_of(matrix.type, matrix.batch_stride) +
           row % problem.rows * matrix.row_bytes();
  }
  const float* factors_or_null() const { return factors.empty() ? nullptr : factors.data(); }
  // What `to` must hold.
  std::vector<uint8_t> want() const {
    std::vector<uint8_t> out = to;
    const int64_t bytes = core::bytes_of(x.type, problem.cols);
    for (int64_t row = 0; row < problem.l * problem.rows; ++row) {
      uint8_t* const at = out.data() + row_at(y, row);
      std::memcpy(at, from.data() + row_at(x, row), static_cast<size_t>(bytes));
      slow_transform(x.type, problem.transform, factors_or_null(), problem.cols, at);
      make_nans_canonical(x.type, problem.cols, at);
    }
    return out;
  }
  std::string describe() const {
    const TransformProblem& p = problem;
    return std::to_string(p.l) + " x " + std::to_string(p.rows) + " x " + std::to_string(p.cols) +
           " " + name_of(p.x.type) + (p.transform.factors ? ", factors" : "") + ", hadamard " +
           std::to_string(p.transform.hadamard) + ", ld " + std::to_string(p.x.ld) + ", " +
           std::to_string(p.y.ld);
  }
};

inline TransformProblem random_transform_problem(Rng& rng) {
  constexpr DataType kTypes[] = {DataType::kF16, DataType::kBF16, DataType::kF32};
  TransformProblem p;
  p.transform.hadamard = rng.chance(0.1) ? 0 : int64_t{16} << rng.integer(0, 4);
  p.transform.factors = rng.chance(0.4);
  const int64_t step = std::max<int64_t>(16, p.transform.hadamard);
  p.cols = step * (rng.chance(0.2) ? rng.integer(1, 70) : rng.integer(1, 5));
  p.rows = rng.chance(0.2) ? rng.integer(100, 200) : rng.integer(1, 9);
  if (p.rows > 100) p.cols = step;
  p.l = rng.integer(1, 3);
  p.x.type = p.y.type = rng.pick(kTypes);
  if (rng.chance(0.4)) p.x.ld = p.cols + rng.integer(1, 20);
  if (rng.chance(0.4)) p.y.ld = p.cols + (rng.chance(0.5) ? 8 : rng.integer(1, 20));
  if (rng.chance(0.4)) p.x.batch_stride = p.rows * (p.cols + 20) + rng.integer(0, 30);
  if (rng.chance(0.4)) p.y.batch_stride = p.rows * (p.cols + 20) + rng.integer(0, 30);
  return p;
}

}  // namespace dualgemm::test
