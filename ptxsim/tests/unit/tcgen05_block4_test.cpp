// NVFP4 and MXFP4 arithmetic of one instruction, against a model in integers that was written from
// the description of the arithmetic and shares nothing with what it checks.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "machine/tensor_core/mma/block4.hpp"

namespace {

using ptxsim::Block4Operand;
using ptxsim::ScaleType;
using Wide = __int128;

constexpr uint32_t kNan = 0x7fffffff;

struct Row {
  uint8_t codes[32];
  uint8_t scales[4];
};

int quarters_of_code(unsigned code) {  // half of the value in quarters: 2 * value
  const int magnitudes[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  return (code & 8) != 0 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

// value = significand * 2^(exponent - 3), for both kinds of scales.
struct Scale {
  bool is_nan;
  int significand;
  int exponent;
};
Scale scale_of(unsigned code, ScaleType type) {
  if (type == ScaleType::kUe8m0) return {code == 255, 8, static_cast<int>(code) - 127};
  code &= 127;
  if (code == 0) return {false, 0, -126};
  if (code < 8) return {false, static_cast<int>(code), -6};
  return {code == 127, static_cast<int>(8 + code % 8), static_cast<int>(code / 8) - 7};
}

Wide shifted(Wide value, int left) {  // toward zero
  if (left >= 0) return value << left;
  return left <= -120 ? 0 : value < 0 ? -(-value >> -left) : value >> -left;
}

// sum * 2^exponent, toward zero, as a float.
uint32_t round_to_float(Wide sum, int exponent) {
  if (sum == 0) return 0;
  const uint32_t sign = sum < 0 ? 0x80000000u : 0;
  Wide magnitude = sum < 0 ? -sum : sum;
  int top = 0;
  while (magnitude >> (top + 1) != 0) ++top;
  int unit = std::max(top + exponent - 23, -149);  // exponent of the last bit that is kept
  const auto kept = static_cast<uint32_t>(shifted(magnitude, exponent - unit));
  if (top + exponent > 127) return sign | 0x7f800000u;
  if (kept == 0) return 0;
  if (kept < (1u << 23)) return sign | kept;
  return sign | static_cast<uint32_t>(unit + 150) << 23 | (kept & 0x7fffff);
}

uint32_t model(const Row& a, const Row& b, unsigned scales, ScaleType type, bool accumulate,
               uint32_t input) {
  const int field = static_cast<int>(input >> 23 & 255);
  if (accumulate && field == 255 && (input & 0x7fffff) != 0) return kNan;
  std::vector<Wide> significands;  // with 23 fractional bits
  std::vector<int> exponents;
  int64_t accumulator = input & 0x7fffff;
  if (field != 0) accumulator |= 1 << 23;
  if (!accumulate) accumulator = 0;
  significands.push_back((input >> 31) != 0 ? -accumulator : accumulator);
  exponents.push_back(accumulate ? std::max(field, 1) - 127 : -126);
  for (unsigned term = 0; term < 4; ++term) {
    int dot = 0;
    for (unsigned k = 16 * term; k < 16 * term + 16; ++k)
      dot += quarters_of_code(a.codes[k / 2] >> k % 2 * 4 & 15) *
             quarters_of_code(b.codes[k / 2] >> k % 2 * 4 & 15);
    const Scale scale_a = scale_of(a.scales[term * scales / 4], type);
    const Scale scale_b = scale_of(b.scales[term * scales / 4], type);
    if (scale_a.is_nan || scale_b.is_nan) return kNan;
    // 2 + 3 + 3 fractional bits become 23.
    significands.push_back(Wide{dot} * scale_a.significand * scale_b.significand << 15);
    exponents.push_back(scale_a.exponent + scale_b.exponent);
  }
  const int largest = *std::max_element(exponents.begin(), exponents.end());
  Wide sum = 0;
  for (size_t i = 0; i < significands.size(); ++i)
    sum += shifted(significands[i], 35 - 23 + exponents[i] - largest);
  return round_to_float(sum, largest - 35);
}

Row random_row(std::mt19937_64& random, ScaleType type) {
  Row row;
  for (uint8_t& code : row.codes) code = static_cast<uint8_t>(random());
  for (uint8_t& scale : row.scales) {
    scale = static_cast<uint8_t>(random());
    // Mostly scales that are near each other, so that truncation shows in the result.
    if (random() % 4 != 0)
      scale = static_cast<uint8_t>(type == ScaleType::kUe8m0 ? 110 + scale % 40 : scale % 0x7f);
    if (random() % 8 == 0) scale = static_cast<uint8_t>(scale % 10);
  }
  return row;
}

uint32_t random_input(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return static_cast<uint32_t>(random());
    case 1:
      return 0;
    default:  // of the size of results
      return static_cast<uint32_t>((random() & 0x807fffff) | (120 + random() % 25) << 23);
  }
}

class Block4 : public testing::TestWithParam<std::tuple<ScaleType, unsigned, bool>> {};

TEST_P(Block4, EqualsTheIntegerModel) {
  const auto [type, scales, accumulate] = GetParam();
  std::mt19937_64 random(20 + scales);
  Block4Operand a(false), b(true);
  std::vector<Row> rows_a, rows_b;
  for (unsigned i = 0; i < 256; ++i) {
    rows_b.push_back(random_row(random, type));
    b.set_row(i, rows_b[i].codes, false);
    b.set_scales(i, rows_b[i].scales, scales, type);
    rows_a.push_back(random_row(random, type));
    a.set_row(i, rows_a[i].codes, false);
    a.set_scales(i, rows_a[i].scales, scales, type);
  }
  for (unsigned m = 0; m < 256; ++m) {
    uint32_t cells[256], before[256];
    for (unsigned n = 0; n < 256; ++n) cells[n] = before[n] = random_input(random);
    ptxsim::block4_row(a, m, b, 251, accumulate, true, cells);
    for (unsigned n = 0; n < 251; ++n) {
      if (accumulate && (before[n] & 0x7fffffff) == 0x7f800000) continue;  // infinities: below
      ASSERT_EQ(cells[n], model(rows_a[m], rows_b[n], scales, type, accumulate, before[n]))
          << "row " << m << " column " << n << " input " << std::hex << before[n];
    }
    for (unsigned n = 251; n < 256; ++n) ASSERT_EQ(cells[n], before[n]) << "past the columns";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Block4,
                         testing::Values(std::tuple(ScaleType::kUe4m3, 4u, true),
                                         std::tuple(ScaleType::kUe4m3, 4u, false),
                                         std::tuple(ScaleType::kUe8m0, 4u, true),
                                         std::tuple(ScaleType::kUe8m0, 2u, true),
                                         std::tuple(ScaleType::kUe8m0, 2u, false)));

// One row times one row with one element in each block.
uint32_t product(std::array<unsigned, 4> codes, std::array<uint8_t, 4> scales, uint32_t input,
                 bool negate = false) {
  uint8_t row_a[32] = {}, row_b[32] = {};
  for (unsigned term = 0; term < 4; ++term) {
    row_a[8 * term] = static_cast<uint8_t>(codes[term]);
    row_b[8 * term] = 2;  // 1.0
  }
  const uint8_t ones[4] = {0x38, 0x38, 0x38, 0x38};
  Block4Operand a(false), b(true);
  a.set_row(0, row_a, negate);
  a.set_scales(0, scales.data(), 4, ScaleType::kUe4m3);
  b.set_row(0, row_b, false);
  b.set_scales(0, ones, 4, ScaleType::kUe4m3);
  uint32_t cell = input;
  ptxsim::block4_row(a, 0, b, 1, true, true, &cell);
  return cell;
}
uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

TEST(Block4Cases, ByHand) {
  const std::array<uint8_t, 4> ones = {0x38, 0x38, 0x38, 0x38};
  EXPECT_EQ(product({1, 2, 3, 7}, ones, 0), bits(0.5f + 1 + 1.5f + 6));
  EXPECT_EQ(product({9, 10, 11, 15}, ones, 0), bits(-9.0f));
  EXPECT_EQ(product({9, 10, 11, 15}, ones, 0, true), bits(9.0f));
  EXPECT_EQ(product({2, 2, 2, 2}, {0x01, 0x00, 0x80, 0x7e}, 0), bits(0x1p-9f + 448));
  EXPECT_EQ(product({2, 0, 0, 0}, {0xb8, 0x38, 0x38, 0x38}, 0), bits(1.0f)) << "sign is ignored";
  EXPECT_EQ(product({0, 0, 0, 0}, {0x38, 0x7f, 0x38, 0x38}, 0), kNan) << "NaN times 0";
  EXPECT_EQ(product({0, 0, 0, 0}, ones, 0x80000000), 0u) << "no negative zero";
  EXPECT_EQ(product({2, 0, 0, 0}, ones, 0x7f800000), 0x7f800000u);
}

// 2^24 has no bit for 1; the sum is cut off, not rounded.
TEST(Block4Cases, SumIsCutOff) {
  const std::array<uint8_t, 4> ones = {0x38, 0x38, 0x38, 0x38};
  EXPECT_EQ(product({2, 0, 0, 0}, ones, bits(0x1p24f)), bits(0x1p24f));
  EXPECT_EQ(product({3, 0, 0, 0}, ones, bits(0x1p24f)), bits(0x1p24f)) << "1.5: nearest is + 2";
  EXPECT_EQ(product({10, 0, 0, 0}, ones, bits(-0x1p24f)), bits(-0x1p24f));
  EXPECT_EQ(product({10, 0, 0, 0}, ones, bits(0x1p24f)), bits(0x1p24f - 1));
}

// 35 fractional bits below the largest exponent: 2^26 keeps 2^-9, 2^27 does not.
TEST(Block4Cases, TermsAreCutOff) {
  const std::array<uint8_t, 4> smallest = {0x01, 0x38, 0x38, 0x38};  // 2^-9
  EXPECT_EQ(product({10, 0, 0, 0}, smallest, bits(0x1p26f)), bits(0x1p26f - 4));
  EXPECT_EQ(product({10, 0, 0, 0}, smallest, bits(0x1p27f)), bits(0x1p27f));
  EXPECT_EQ(product({9, 0, 0, 0}, smallest, bits(0x1p26f)), bits(0x1p26f)) << "2^-10";
}

TEST(Block4Cases, RoundedModeIsClose) {
  std::mt19937_64 random(3);
  Block4Operand a(false), b(true);
  for (unsigned i = 0; i < 256; ++i) {
    Row row = random_row(random, ScaleType::kUe4m3);
    for (uint8_t& scale : row.scales) scale = static_cast<uint8_t>(0x30 + scale % 16);
    a.set_row(i, row.codes, false);
    b.set_row(i, row.codes, false);
    a.set_scales(i, row.scales, 4, ScaleType::kUe4m3);
    b.set_scales(i, row.scales, 4, ScaleType::kUe4m3);
  }
  for (unsigned m = 0; m < 256; ++m) {
    uint32_t exact[256], rounded[256];
    ptxsim::block4_row(a, m, b, 256, false, true, exact);
    ptxsim::block4_row(a, m, b, 256, false, false, rounded);
    // Terms have at most 12 significant bits and lie within 2^8 of each other: no mode rounds.
    for (unsigned n = 0; n < 256; ++n)
      ASSERT_EQ(std::bit_cast<float>(exact[n]), std::bit_cast<float>(rounded[n]));
  }
}

}  // namespace
