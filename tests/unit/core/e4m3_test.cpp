#include "core/e4m3.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/e2m1.hpp"
#include "dualgemm/formats.hpp"
#include "support/limits.hpp"
#include "support/rng.hpp"
#include "unit/core/nearest.hpp"

namespace dualgemm::test {
namespace {

uint8_t expected_bits(float value) {
  const uint32_t code = nearest_code(e4m3_magnitudes(), std::abs(static_cast<double>(value)));
  return static_cast<uint8_t>(code | (std::signbit(value) ? 0x80 : 0));
}

TEST(E4M3, DecodesEveryByte) {
  for (int byte = 0; byte < 256; ++byte) {
    const float value = decode_e4m3(static_cast<uint8_t>(byte));
    EXPECT_EQ(std::signbit(value), byte >= 128) << byte;
    if (byte % 128 == 127) {
      EXPECT_TRUE(std::isnan(value)) << byte;
    } else {
      EXPECT_EQ(std::abs(value), e4m3_magnitudes()[static_cast<size_t>(byte % 128)]) << byte;
    }
  }
}

TEST(E4M3, DecodesTheSpecificationsExamples) {  // OCP OFP8, table of E4M3's special values
  EXPECT_EQ(decode_e4m3(0x7E), 448.0f);
  EXPECT_EQ(decode_e4m3(0xFE), -448.0f);
  EXPECT_EQ(decode_e4m3(0x08), 0.015625f);     // smallest normal, 2^-6
  EXPECT_EQ(decode_e4m3(0x07), 0.013671875f);  // largest subnormal, 7/8 * 2^-6
  EXPECT_EQ(decode_e4m3(0x01), 0.001953125f);  // smallest subnormal, 2^-9
  EXPECT_EQ(decode_e4m3(0x38), 1.0f);
  EXPECT_EQ(decode_e4m3(0x78), 256.0f);  // exponent 15 is an ordinary one: 256 ... 448
}

TEST(E4M3, ScaleIgnoresTheSign) {
  for (int byte = 0; byte < 256; ++byte) {
    const float scale = decode_scale(static_cast<uint8_t>(byte));
    const float magnitude = decode_e4m3(static_cast<uint8_t>(byte & 0x7F));
    EXPECT_EQ(std::bit_cast<uint32_t>(scale), std::bit_cast<uint32_t>(magnitude)) << byte;
    EXPECT_EQ(std::isnan(scale), byte == 0x7F || byte == 0xFF) << byte;
  }
}

TEST(E4M3, RoundTripKeepsEveryByte) {
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(encode_e4m3(decode_e4m3(static_cast<uint8_t>(byte))), byte);
  }
}

TEST(E4M3, MidpointsGoToTheEvenCodeAndNeighboursToTheNearest) {
  for (uint8_t code = 0; code < 0x7E; ++code) {
    const float low = decode_e4m3(code), high = decode_e4m3(code + 1), middle = (low + high) / 2;
    const uint8_t even = code % 2 == 0 ? code : code + 1;
    EXPECT_EQ(encode_e4m3(middle), even) << middle;
    EXPECT_EQ(encode_e4m3(std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(encode_e4m3(std::nextafter(middle, kInfinity)), code + 1);
    EXPECT_EQ(encode_e4m3(-middle), even | 0x80);
    for (const float value : {low, std::nextafter(low, kInfinity)})
      EXPECT_EQ(encode_e4m3(value), code);
    EXPECT_EQ(encode_e4m3(std::nextafter(high, 0.0f)), code + 1);
  }
}

TEST(E4M3, SaturatesKeepsSignsAndMapsNan) {
  const float largest = std::numeric_limits<float>::max(),
              tiny = std::numeric_limits<float>::denorm_min();
  for (const float value : {448.0f, 449.0f, 463.99f, 464.0f, 480.0f, 1e9f, largest, kInfinity}) {
    EXPECT_EQ(encode_e4m3(value), 0x7E) << value;
    EXPECT_EQ(encode_e4m3(-value), 0xFE) << value;
  }
  EXPECT_EQ(encode_e4m3(0.0f), 0x00);
  EXPECT_EQ(encode_e4m3(-0.0f), 0x80);
  EXPECT_EQ(encode_e4m3(tiny), 0x00);
  EXPECT_EQ(encode_e4m3(-tiny), 0x80);
  for (const uint32_t payload : {0x00000001u, 0x003FFFFFu, 0x00400000u, 0x007FFFFFu}) {
    EXPECT_EQ(encode_e4m3(std::bit_cast<float>(0x7F800000u | payload)), 0x7F);
    EXPECT_EQ(encode_e4m3(std::bit_cast<float>(0xFF800000u | payload)), 0xFF);
  }
}

TEST(E4M3, EncodesEveryHalfAsTheSearchDoes) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    for (const float value :
         {decode_f16(static_cast<uint16_t>(bits)), decode_bf16(static_cast<uint16_t>(bits))}) {
      if (std::isnan(value)) continue;
      ASSERT_EQ(encode_e4m3(value), expected_bits(value)) << value;
    }
  }
}

TEST(E4M3, EncodesRandomFloatsAsTheSearchDoes) {
  Rng rng;
  for (int i = 0; i < 100000; ++i) {
    const float value = std::ldexp(rng.uniform(-2.0f, 2.0f), static_cast<int>(rng.integer(-14, 9)));
    ASSERT_EQ(encode_e4m3(value), expected_bits(value)) << value;
  }
}

// The foundation of every exact kernel: a product has at most 6 significant bits and lies
// in 2^-10 ... 2688.
TEST(E4M3, ProductsWithE2M1AreExactInFp16AndBf16) {
  for (uint8_t code = 0; code < 16; ++code) {
    for (uint8_t scale = 0; scale < 0x7F; ++scale) {
      const double exact =
          static_cast<double>(decode_e2m1(code)) * static_cast<double>(decode_e4m3(scale));
      const float product = decode_e2m1(code) * decode_e4m3(scale);
      ASSERT_EQ(product, exact);
      ASSERT_EQ(decode_f16(encode_f16(product)), product);
      ASSERT_EQ(decode_bf16(encode_bf16(product)), product);
      if (product != 0.0f) {
        ASSERT_GE(std::abs(product), 0x1p-10f);
        ASSERT_LE(std::abs(product), 2688.0f);
        ASSERT_EQ(std::ldexp(product, 5 - std::ilogb(product)),
                  std::trunc(std::ldexp(product, 5 - std::ilogb(product))));
      }
    }
  }
}

static_assert(core::encode_e4m3(1.0f) == 0x38 && core::decode_e4m3(0x38) == 1.0f,
              "usable in constant expressions");

}  // namespace
}  // namespace dualgemm::test
