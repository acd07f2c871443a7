// Problems whose results are known without the oracle: values written out by hand, operands filled
// element by element. Tests hold kernels to them, and the oracle too.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "support/inputs.hpp"

namespace dualgemm::test {

inline constexpr double kE2M1Values[16] = {0.0,  0.5,  1.0,  1.5,  2.0,  3.0,  4.0,  6.0,
                                           -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0};
inline constexpr uint8_t kOneCode = 2, kOneScale = 0x38;  // both are 1

inline double e4m3_value(int byte) {  // OCP E4M3, sign ignored
  const int exponent = (byte >> 3) & 15, mantissa = byte & 7;
  if (exponent == 15 && mantissa == 7) return std::nan("");
  return exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
}

// A problem of one batch with alphas of 1 and D = g * u in FP32, filled by the three setters.
struct HandMade {
  RandomCase data;
  std::vector<double> expected;  // row-major, m x n; NaN: any NaN

  HandMade(const Problem& p, Rng& rng) : data(p, rng, Values::kExact) {
    expected.resize(static_cast<size_t>(p.m * p.n));
  }
  double& at(int64_t row, int64_t col) {
    return expected[static_cast<size_t>(row * data.problem.n + col)];
  }

  static void set_code(Operand& operand, const core::ResolvedMatrix& matrix, int64_t row,
                       int64_t col, int code) {
    uint8_t& pair = operand.data[(row * matrix.ld + col) / 2];
    const int shift = col % 2 * 4;
    pair = static_cast<uint8_t>((pair & ~(15 << shift)) | code << shift);
  }
  static void set_scale(Operand& operand, const core::ResolvedMatrix& matrix, int64_t row,
                        int64_t block, int byte) {
    operand.scales[matrix.scale_map()(row, block)] = static_cast<uint8_t>(byte);
  }
  // Every element `code` times `scale`.
  static void fill(Operand& operand, const core::ResolvedMatrix& matrix, int code, int scale) {
    for (int64_t row = 0; row < matrix.rows; ++row) {
      for (int64_t col = 0; col < matrix.cols; ++col) set_code(operand, matrix, row, col, code);
      for (int64_t b = 0; b < matrix.sf_cols; ++b) set_scale(operand, matrix, row, b, scale);
    }
  }
  // a(row, col) = value, which its type holds; a of 16 bits.
  void set_a(int64_t row, int64_t col, float value) {
    store_element(data.a.data.data(), data.problem.a.type, row * data.resolved.a.ld + col, value);
  }
  void fill_a(float value) {
    for (int64_t row = 0; row < data.problem.m; ++row) {
      for (int64_t col = 0; col < data.problem.k; ++col) set_a(row, col, value);
    }
  }

  // Element by element against `expected`; D as the bytes that a kernel left.
  ::testing::AssertionResult is(const std::vector<uint8_t>& d) const {
    const int64_t n = data.problem.n;
    for (int64_t i = 0; i < data.problem.m * n; ++i) {
      const double want = expected[static_cast<size_t>(i)];
      const double got = load_element(d.data(), data.problem.d.type, i);
      if (std::isnan(want) ? std::isnan(got) : got == want) continue;
      return ::testing::AssertionFailure()
             << "d(" << i / n << ", " << i % n << ") is " << got << ", must be " << want;
    }
    return ::testing::AssertionSuccess();
  }
};

inline Problem hand_made_problem(int64_t m, int64_t n, int64_t k, DataType a, ScaleLayout layout) {
  Problem p{.m = m, .n = n, .k = k, .a = {.type = a}, .d = {.type = DataType::kF32}};
  p.act.kind = ActivationKind::kIdentity;
  p.gate.scale_layout = p.up.scale_layout = layout;
  if (a == DataType::kE2M1) p.a.scale_layout = layout;
  return p;
}

// Which of the 256 rows that a hand-made case is about are in it.
struct Rows {
  int64_t first = 0, count = 256;
};

// Column n of D shows the weights of row n, whose scale byte is n in all its blocks: row k of A is
// 1 at k and 0 elsewhere. Block b holds the 16 codes from code b on, so every code stands at every
// place of a block. The other weight is 1 everywhere.
inline HandMade every_weight(DataType a_type, bool in_gate, ScaleLayout layout, Rng& rng,
                             Rows rows = {}) {
  HandMade made(hand_made_problem(rows.count, 256, 256, a_type, layout), rng);
  RandomCase& data = made.data;
  Operand& shown = in_gate ? data.gate : data.up;
  const core::ResolvedMatrix& matrix = in_gate ? data.resolved.gate : data.resolved.up;
  if (in_gate) HandMade::fill(data.up, data.resolved.up, kOneCode, kOneScale);
  if (!in_gate) HandMade::fill(data.gate, data.resolved.gate, kOneCode, kOneScale);
  if (a_type == DataType::kE2M1) HandMade::fill(data.a, data.resolved.a, 0, kOneScale);
  if (a_type != DataType::kE2M1) made.fill_a(0.0f);
  for (int64_t k = 0; k < 256; ++k) {
    const int64_t row = k - rows.first;
    const bool is_shown = row >= 0 && row < rows.count;
    if (is_shown && a_type == DataType::kE2M1)
      HandMade::set_code(data.a, data.resolved.a, row, k, kOneCode);
    if (is_shown && a_type != DataType::kE2M1) made.set_a(row, k, 1.0f);
    const auto code = static_cast<int>((k + k / 16) % 16);
    for (int64_t n = 0; n < 256; ++n) {
      HandMade::set_code(shown, matrix, n, k, code);
      HandMade::set_scale(shown, matrix, n, k / 16, static_cast<int>(n));
      if (is_shown) made.at(row, n) = kE2M1Values[code] * e4m3_value(static_cast<int>(n));
    }
  }
  return made;
}

// Row m of D shows row m of A, whose scale byte is m in all blocks but the first, which holds ones:
// Up picks a one, Gate picks an element of the other blocks.
inline HandMade every_activation(ScaleLayout layout, Rng& rng, Rows rows = {}) {
  HandMade made(hand_made_problem(rows.count, 256, 320, DataType::kE2M1, layout), rng);
  RandomCase& data = made.data;
  HandMade::fill(data.a, data.resolved.a, kOneCode, kOneScale);
  HandMade::fill(data.gate, data.resolved.gate, 0, kOneScale);
  HandMade::fill(data.up, data.resolved.up, 0, kOneScale);
  for (int64_t n = 0; n < 256; ++n) {
    HandMade::set_code(data.gate, data.resolved.gate, n, 16 + n, kOneCode);
    HandMade::set_code(data.up, data.resolved.up, n, 0, kOneCode);
    const auto code = static_cast<int>((n + n / 16) % 16);
    for (int64_t m = 0; m < rows.count; ++m) {
      const auto scale = static_cast<int>(rows.first + m);
      HandMade::set_code(data.a, data.resolved.a, m, 16 + n, code);
      HandMade::set_scale(data.a, data.resolved.a, m, 1 + n / 16, scale);
      made.at(m, n) = kE2M1Values[code] * e4m3_value(scale);
    }
  }
  return made;
}

// The largest and the smallest products: 6 * 448 on both sides, 4096 of them (exact in FP32, beyond
// fp16), and 0.5 * 2^-9. The sign of Gate alternates with the column.
inline HandMade extreme_scales(bool largest, DataType d_type, Rng& rng, int64_t rows = 9) {
  Problem p = hand_made_problem(rows, 40, 4096, DataType::kE2M1, ScaleLayout::kLinear);
  p.d.type = d_type;
  HandMade made(p, rng);
  RandomCase& data = made.data;
  const int code = largest ? 7 : 1, scale = largest ? 0x7E : 0x01;
  HandMade::fill(data.a, data.resolved.a, code, scale);
  HandMade::fill(data.gate, data.resolved.gate, code, scale);
  HandMade::fill(data.up, data.resolved.up, code, scale);
  const double value = kE2M1Values[code] * e4m3_value(scale), sum = 4096.0 * value * value;
  for (int64_t n = 0; n < p.n; ++n) {
    for (int64_t k = 0; n % 2 != 0 && k < p.k; ++k) {
      HandMade::set_code(data.gate, data.resolved.gate, n, k, code | 8);
    }
    for (int64_t m = 0; m < p.m; ++m) {
      uint32_t d = 0;  // sum^2, rounded to D's type
      store_element(&d, d_type, 0, static_cast<float>(n % 2 == 0 ? sum * sum : -sum * sum));
      made.at(m, n) = load_element(&d, d_type, 0);
    }
  }
  return made;
}

}  // namespace dualgemm::test
