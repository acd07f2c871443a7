#include "core/e2m1.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "dualgemm/formats.hpp"
#include "support/limits.hpp"
#include "support/rng.hpp"
#include "unit/core/nearest.hpp"

namespace dualgemm::test {
namespace {

uint8_t expected_code(float value) {
  const uint32_t code = nearest_code(e2m1_magnitudes(), std::abs(static_cast<double>(value)));
  return static_cast<uint8_t>(code | (std::signbit(value) ? 8 : 0));
}

TEST(E2M1, DecodesEveryCode) {
  const float table[16] = {0.f,  .5f,  1.f,  1.5f,  2.f,  3.f,  4.f,  6.f,
                           -0.f, -.5f, -1.f, -1.5f, -2.f, -3.f, -4.f, -6.f};
  for (int byte = 0; byte < 256; ++byte) {  // the upper nibble does not count
    const float value = decode_e2m1(static_cast<uint8_t>(byte));
    EXPECT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(table[byte % 16])) << byte;
  }
}

TEST(E2M1, DoubledTableIsTwiceTheValue) {
  for (int code = 0; code < 16; ++code) {
    EXPECT_EQ(core::kE2M1Doubled[static_cast<size_t>(code)],
              2.0f * decode_e2m1(static_cast<uint8_t>(code)));
  }
}

TEST(E2M1, RoundTripKeepsEveryCode) {
  for (uint8_t code = 0; code < 16; ++code) EXPECT_EQ(encode_e2m1(decode_e2m1(code)), code);
}

TEST(E2M1, MidpointsGoToTheEvenCodeAndNeighboursToTheNearest) {
  for (uint8_t code = 0; code < 7; ++code) {
    const float low = decode_e2m1(code), high = decode_e2m1(code + 1), middle = (low + high) / 2;
    const uint8_t even = code % 2 == 0 ? code : code + 1;
    EXPECT_EQ(encode_e2m1(middle), even) << middle;
    EXPECT_EQ(encode_e2m1(std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(encode_e2m1(std::nextafter(middle, kInfinity)), code + 1);
    EXPECT_EQ(encode_e2m1(-middle), even | 8);
    EXPECT_EQ(encode_e2m1(-std::nextafter(middle, 0.0f)), code | 8);
    EXPECT_EQ(encode_e2m1(-std::nextafter(middle, kInfinity)), (code + 1) | 8);
  }
}

TEST(E2M1, SaturatesKeepsSignsAndMapsNan) {
  const float largest = std::numeric_limits<float>::max(),
              tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(encode_e2m1(largest), 0x7);
  EXPECT_EQ(encode_e2m1(-largest), 0xF);
  EXPECT_EQ(encode_e2m1(kInfinity), 0x7);
  EXPECT_EQ(encode_e2m1(-kInfinity), 0xF);
  EXPECT_EQ(encode_e2m1(0.0f), 0x0);
  EXPECT_EQ(encode_e2m1(-0.0f), 0x8);
  EXPECT_EQ(encode_e2m1(tiny), 0x0);
  EXPECT_EQ(encode_e2m1(-tiny), 0x8);
  for (const uint32_t payload : {0x00000001u, 0x003FFFFFu, 0x00400000u, 0x007FFFFFu}) {
    EXPECT_EQ(encode_e2m1(std::bit_cast<float>(0x7F800000u | payload)), 0x7);
    EXPECT_EQ(encode_e2m1(std::bit_cast<float>(0xFF800000u | payload)), 0xF);
  }
}

TEST(E2M1, EncodesEveryHalfAsTheSearchDoes) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    for (const float value :
         {decode_f16(static_cast<uint16_t>(bits)), decode_bf16(static_cast<uint16_t>(bits))}) {
      if (std::isnan(value)) continue;
      ASSERT_EQ(encode_e2m1(value), expected_code(value)) << value;
    }
  }
}

TEST(E2M1, EncodesRandomFloatsAsTheSearchDoes) {
  Rng rng;
  for (int i = 0; i < 300000; ++i) {
    const float value = i % 2 == 0 ? rng.any_finite() : rng.uniform(-7.0f, 7.0f);
    ASSERT_EQ(encode_e2m1(value), expected_code(value)) << value;
  }
}

static_assert(core::encode_e2m1(-2.5f) == 0xC && core::decode_e2m1(0xC) == -2.0f,
              "usable in constant expressions");

}  // namespace
}  // namespace dualgemm::test
