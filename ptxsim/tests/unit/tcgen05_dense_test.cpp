// Dense tensor core arithmetic against a model in integers that decodes the codes by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "machine/tensor_core/mma/dense.hpp"

namespace {

using ptxsim::Accumulator;
using ptxsim::DenseOperand;
using ptxsim::DenseRules;
using ptxsim::Element;
using Wide = __int128;

struct Layout {
  Element element;
  int exponent_bits, fraction_bits, unused_low_bits;
  bool has_infinity;
  int nan_from;  // smallest magnitude code that is NaN; 0: no NaN
};
// tf32: the low 13 bits of the word are ignored.
const Layout kLayouts[] = {
    {Element::kF16, 5, 10, 0, true, 0x7c01},    {Element::kBf16, 8, 7, 0, true, 0x7f81},
    {Element::kTf32, 8, 10, 13, true, 0x3fc01}, {Element::kE4m3, 4, 3, 0, false, 0x7f},
    {Element::kE5m2, 5, 2, 0, true, 0x7d},      {Element::kE2m3, 2, 3, 0, false, 0},
    {Element::kE3m2, 3, 2, 0, false, 0},        {Element::kE2m1, 2, 1, 0, false, 0}};

// value = significand * 2^(exponent - fraction_bits); zero has the exponent -126.
struct Number {
  bool is_nan = false, is_infinite = false;
  int64_t significand = 0;
  int exponent = -126;
};

Number decode(const Layout& l, uint32_t code) {
  code >>= l.unused_low_bits;
  const int magnitude = static_cast<int>(code & ((1u << (l.exponent_bits + l.fraction_bits)) - 1));
  const bool negative = (code >> (l.exponent_bits + l.fraction_bits) & 1) != 0;
  if (l.nan_from != 0 && magnitude >= l.nan_from) return {.is_nan = true};
  const int bias = (1 << (l.exponent_bits - 1)) - 1;
  const int field = magnitude >> l.fraction_bits;
  if (l.has_infinity && field == (1 << l.exponent_bits) - 1)
    return {.is_infinite = true, .significand = negative ? -1 : 1};
  int64_t significand = magnitude & ((1 << l.fraction_bits) - 1);
  if (field != 0) significand |= int64_t{1} << l.fraction_bits;
  if (significand == 0) return {};
  return {false, false, negative ? -significand : significand, std::max(field, 1) - bias};
}

Wide shifted(Wide value, int left) {  // toward zero
  if (left >= 0) return value << left;
  return left <= -120 ? 0 : value < 0 ? -(-value >> -left) : value >> -left;
}

// sum * 2^exponent in a format with `fraction` bits and the given smallest and largest exponent,
// toward zero, or to nearest even.
double rounded(Wide sum, int exponent, int fraction, int smallest, int largest, bool nearest) {
  if (sum == 0) return 0;
  const Wide magnitude = sum < 0 ? -sum : sum;
  int top = 0;
  while (magnitude >> (top + 1) != 0) ++top;
  const int unit = std::max(top + exponent, smallest) - fraction;
  Wide kept = shifted(magnitude, exponent - unit);
  if (nearest && unit > exponent) {
    const int cut = unit - exponent;
    const Wide rest = cut >= 120 ? 0 : magnitude - (kept << cut);
    const Wide half = cut >= 120 ? 1 : Wide{1} << (cut - 1);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  }
  const double result = std::ldexp(static_cast<double>(static_cast<int64_t>(kept)), unit);
  const double limit = std::ldexp(1.0, largest + 1);
  return (sum < 0 ? -1 : 1) * (result >= limit ? INFINITY : result);
}

struct Model {
  Layout layout;
  DenseRules rules;
  std::vector<uint32_t> a, b;
  Layout accumulator() const {
    return rules.accumulator == Accumulator::kF16
               ? kLayouts[0]
               : Layout{Element::kTf32, 8, 23, 0, true, 0x7f800001};
  }

  // A double, as every result of every format is one.
  double operator()(bool accumulate, uint32_t input) const {
    Number c = accumulate ? decode(accumulator(), input) : Number{};
    double special = 0;
    if (c.is_nan) special += NAN;
    if (c.is_infinite) special += static_cast<double>(c.significand) * INFINITY;
    std::vector<Wide> significands{c.significand};
    std::vector<int> exponents{c.exponent}, fractions{accumulator().fraction_bits};
    for (size_t k = 0; k < a.size(); ++k) {
      const Number x = decode(layout, a[k]), y = decode(layout, b[k]);
      if (x.is_nan || y.is_nan) special += NAN;
      if (x.is_infinite || y.is_infinite)
        special += static_cast<double>(x.significand) * static_cast<double>(y.significand) *
                   INFINITY;  // 0 * infinity is NaN
      significands.push_back(Wide{x.significand} * y.significand);
      exponents.push_back(x.exponent + y.exponent);
      fractions.push_back(2 * layout.fraction_bits);
    }
    if (special != 0) return special;
    const int largest = *std::max_element(exponents.begin(), exponents.end());
    Wide sum = 0;
    for (size_t i = 0; i < significands.size(); ++i)
      sum += shifted(significands[i], rules.fraction_bits - fractions[i] + exponents[i] - largest);
    const int unit = largest - rules.fraction_bits;
    if (rules.accumulator == Accumulator::kF16) return rounded(sum, unit, 10, -14, 15, true);
    return rounded(sum, unit, rules.accumulator == Accumulator::kF32 ? 23 : 13, -126, 127, false);
  }
};

double value_of(Accumulator accumulator, uint32_t cell) {
  if (accumulator != Accumulator::kF16) return std::bit_cast<float>(cell);
  const Number n = decode(kLayouts[0], cell);
  if (n.is_nan) return NAN;
  return n.is_infinite ? static_cast<double>(n.significand) * INFINITY
                       : std::ldexp(static_cast<double>(n.significand), n.exponent - 10);
}

class Dense : public testing::TestWithParam<std::tuple<int, Accumulator, int>> {};

TEST_P(Dense, EqualsTheIntegerModel) {
  const auto [index, accumulator, fraction_bits] = GetParam();
  const Layout& layout = kLayouts[index];
  Model model{layout, {.accumulator = accumulator, .fraction_bits = fraction_bits}, {}, {}};
  std::mt19937_64 random(100 + static_cast<unsigned>(index));
  const unsigned bits = ptxsim::bits_of(layout.element);
  constexpr unsigned kRows = 40, kColumns = 60, kK = 32;
  std::vector<std::vector<uint32_t>> codes_a(kRows), codes_b(kColumns);
  DenseOperand a(kRows, kK, false), b(kColumns, kK, true);
  // Every third row or column is free of codes with the largest exponents, else nearly all results
  // would be special.
  auto code = [&](unsigned row) {
    auto c = static_cast<uint32_t>(random()) & ((bits == 32 ? 0 : 1u << bits) - 1u);
    if (row % 3 != 0) c &= ~(1u << (bits - 2));
    if (row % 3 == 2 && random() % 3 == 0) c &= 1u << (bits - 1);
    return c;
  };
  for (unsigned row = 0; row < kRows; ++row)
    for (unsigned k = 0; k < kK; ++k) {
      codes_a[row].push_back(code(row));
      a.set(row, k, layout.element, codes_a[row][k]);
    }
  for (unsigned n = 0; n < kColumns; ++n)
    for (unsigned k = 0; k < kK; ++k) {
      codes_b[n].push_back(code(n));
      b.set(n, k, layout.element, codes_b[n][k]);
    }
  for (const bool accumulate : {true, false}) {
    for (unsigned row = 0; row < kRows; ++row) {
      uint32_t cells[kColumns], before[kColumns];
      for (uint32_t& cell : before) cell = static_cast<uint32_t>(random());
      if (row % 2 == 0)  // of the size of results
        for (uint32_t& cell : before)
          cell = accumulator == Accumulator::kF16 ? (cell & 0xbfff)
                                                  : (cell & 0x807fffff) | (112 + cell % 32) << 23;
      std::copy_n(before, kColumns, cells);
      ptxsim::dense_row(a, row, b, model.rules, accumulate, cells);
      for (unsigned n = 0; n < kColumns; ++n) {
        model.a = codes_a[row];
        model.b = codes_b[n];
        const double want = model(accumulate, before[n]);
        const double got = value_of(accumulator, cells[n]);
        if (std::isnan(want)) {
          ASSERT_EQ(cells[n], accumulator == Accumulator::kF16 ? 0x7fffu : 0x7fffffffu);
        } else {
          ASSERT_EQ(got, want) << "row " << row << " column " << n << std::hex << " input "
                               << before[n] << " accumulate " << accumulate;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Dense,
                         testing::Combine(testing::Range(0, 8),
                                          testing::Values(Accumulator::kF32, Accumulator::kF16,
                                                          Accumulator::kF32Fraction13),
                                          testing::Values(25, 13)));

uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

// a . b + input with f16 codes.
uint32_t dot(std::vector<uint16_t> codes_a, std::vector<uint16_t> codes_b, uint32_t input,
             DenseRules rules = {}) {
  DenseOperand a(1, static_cast<unsigned>(codes_a.size()), false),
      b(1, static_cast<unsigned>(codes_b.size()), true);
  for (unsigned k = 0; k < codes_a.size(); ++k) {
    a.set(0, k, Element::kF16, codes_a[k]);
    b.set(0, k, Element::kF16, codes_b[k]);
  }
  ptxsim::dense_row(a, 0, b, rules, true, &input);
  return input;
}

constexpr uint16_t kOne = 0x3c00, kMinusOne = 0xbc00, kTwoToMinus14 = 0x0400, kInfinity = 0x7c00;

// Codes of 16 bits and fewer, each of them.
TEST(DenseCases, EveryCodeIsDecoded) {
  for (const Layout& l : kLayouts) {
    const int bits = 1 + l.exponent_bits + l.fraction_bits;
    if (bits > 16) continue;
    for (uint32_t code = 0; code < 1u << bits; ++code) {
      DenseOperand operand(1, 1, false);
      operand.set(0, 0, l.element, code);
      const Number n = decode(l, code);
      const double value = operand.values()[0];
      if (n.is_nan) {
        ASSERT_TRUE(std::isnan(value)) << code;
      } else if (n.is_infinite) {
        ASSERT_EQ(value, n.significand < 0 ? -HUGE_VAL : HUGE_VAL) << code;
      } else {
        ASSERT_EQ(value, std::ldexp(n.significand, n.exponent - l.fraction_bits)) << code;
        ASSERT_EQ(operand.exponents()[0], n.exponent) << code;
      }
    }
  }
}

TEST(DenseCases, CutOffByHand) {
  EXPECT_EQ(dot({kOne, kOne}, {kOne, kMinusOne}, bits(3)), bits(3));
  // 25 fractional bits below 1: 2^-25 stays in the sum, 2^-26 does not; three times 2^-26 is lost
  // three times.
  const uint16_t two_to_minus_12 = 0x0c00, two_to_minus_13 = 0x0800;
  EXPECT_EQ(dot({two_to_minus_12}, {two_to_minus_13}, bits(-1)), bits(-1 + 0x1p-24f))
      << "the sum, -1 + 2^-25, is cut off toward zero";
  EXPECT_EQ(dot({two_to_minus_13, two_to_minus_13, two_to_minus_13},
                {two_to_minus_13, two_to_minus_13, two_to_minus_13}, bits(-1)),
            bits(-1));
  // With 13 fractional bits 2^-14 is lost, 2^-13 is not.
  EXPECT_EQ(dot({kTwoToMinus14}, {kOne}, bits(1), {.fraction_bits = 13}), bits(1));
  EXPECT_EQ(dot({two_to_minus_13}, {kOne}, bits(1), {.fraction_bits = 13}), bits(1 + 0x1p-13f));
}

TEST(DenseCases, ResultsAreCutOffForF32AndRoundedForF16) {
  EXPECT_EQ(dot({kOne}, {kOne}, bits(0x1p24f)), bits(0x1p24f));
  EXPECT_EQ(dot({kMinusOne}, {kOne}, bits(0x1p24f)), bits(0x1p24f - 1));
  const DenseRules f16{.accumulator = Accumulator::kF16};
  EXPECT_EQ(dot({kOne}, {kOne}, 0x6800, f16), 0x6800u) << "2048 + 1 is a tie: even";
  EXPECT_EQ(dot({kOne}, {kOne}, 0x6801, f16), 0x6802u) << "2050 + 1 is a tie: even";
  EXPECT_EQ(dot({0x7bff}, {0x4000}, 0, f16), 0x7c00u) << "131008 overflows";
  const DenseRules short_sums{.accumulator = Accumulator::kF32Fraction13};
  EXPECT_EQ(dot({kTwoToMinus14}, {kOne}, bits(1), short_sums), bits(1));
}

TEST(DenseCases, Specials) {
  EXPECT_EQ(dot({kInfinity}, {kOne}, 0), bits(INFINITY));
  EXPECT_EQ(dot({kInfinity, kInfinity}, {kOne, kMinusOne}, 0), 0x7fffffffu);
  EXPECT_EQ(dot({kInfinity}, {0}, 0), 0x7fffffffu);
  EXPECT_EQ(dot({0}, {kOne}, 0xff800000), 0xff800000u);
  EXPECT_EQ(dot({kMinusOne}, {0}, 0x80000000), 0u) << "no negative zero";
}

TEST(DenseCases, ScaleAndShift) {
  DenseOperand a(1, 1, false), b(1, 1, true);
  a.set(0, 0, Element::kE4m3, 0x38);
  b.set(0, 0, Element::kE4m3, 0x40);
  a.scale_row(0, 127 + 5);
  b.scale_row(0, 127 - 2);
  uint32_t cell = bits(24);
  ptxsim::dense_row(a, 0, b, {.input_shift = 3}, true, &cell);
  EXPECT_EQ(cell, bits(2 * 8 + 3));
  a.scale_row(0, 0xff);
  ptxsim::dense_row(a, 0, b, {}, true, &cell);
  EXPECT_EQ(cell, 0x7fffffffu);
}

TEST(IntegerRow, WrapsOrSaturates) {
  ptxsim::IntegerOperand a(1, 2, false), b(2, 2, true);
  a.set(0, 0, true, 0x80);  // -128
  a.set(0, 1, true, 0x7f);
  b.set(0, 0, false, 0xff);
  b.set(0, 1, false, 2);
  b.set(1, 0, true, 0xff);  // -1
  b.set(1, 1, true, 1);
  uint32_t cells[2] = {10, 0x7fffffff};
  ptxsim::integer_row(a, 0, b, false, true, cells);
  EXPECT_EQ(cells[0], static_cast<uint32_t>(10 - 128 * 255 + 254));
  EXPECT_EQ(cells[1], 0x7fffffffu + 255);
  cells[0] = 0x80000000;
  cells[1] = 0x7fffffff;
  ptxsim::integer_row(a, 0, b, true, true, cells);
  EXPECT_EQ(cells[0], 0x80000000u);
  EXPECT_EQ(cells[1], 0x7fffffffu);
  ptxsim::integer_row(a, 0, b, true, false, cells);
  EXPECT_EQ(cells[1], 255u);
}

}  // namespace
