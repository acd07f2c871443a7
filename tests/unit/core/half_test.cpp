#include "core/half.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "dualgemm/formats.hpp"
#include "support/limits.hpp"
#include "support/rng.hpp"

namespace dualgemm::test {
namespace {

// A binary format by its parameters; one definition serves both. Values through ldexp, no bit
// tricks.
struct Format {
  const char* name;
  int exponent_bits, mantissa_bits;
  float (*decode)(uint16_t) noexcept;
  uint16_t (*encode)(float) noexcept;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int max_exponent() const { return (1 << exponent_bits) - 1; }
  uint16_t infinity() const { return static_cast<uint16_t>(max_exponent() << mantissa_bits); }

  double value(uint16_t bits) const {
    const int exponent = bits % 0x8000 >> mantissa_bits, mantissa = bits % (1 << mantissa_bits);
    const double fraction = std::ldexp(mantissa, -mantissa_bits);
    double magnitude =
        std::ldexp(exponent == 0 ? fraction : 1.0 + fraction, std::max(exponent, 1) - bias());
    if (exponent == max_exponent()) magnitude = mantissa == 0 ? HUGE_VAL : NAN;
    return bits >= 0x8000 ? -magnitude : magnitude;
  }
  // Nearest even by scaling to units of the last place; infinite from half a unit above the largest
  // on.
  double rounded(float x) const {
    if (x == 0.0f || std::isinf(x)) return x;
    const int exponent = std::max(std::ilogb(x), 1 - bias());
    const double unit = std::ldexp(1.0, exponent - mantissa_bits);
    const double result = std::nearbyint(static_cast<double>(x) / unit) * unit;
    return std::abs(result) >= std::ldexp(1.0, max_exponent() - bias()) ? std::copysign(HUGE_VAL, x)
                                                                        : result;
  }
};

class Half : public ::testing::TestWithParam<Format> {};

TEST_P(Half, DecodesEveryBitPattern) {
  const Format& format = GetParam();
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double want = format.value(static_cast<uint16_t>(bits));
    const float got = format.decode(static_cast<uint16_t>(bits));
    ASSERT_EQ(std::signbit(got), bits >= 0x8000) << bits;
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_TRUE(std::bit_cast<uint32_t>(got) & 0x00400000u) << bits << ": must be quiet";
    } else {
      ASSERT_EQ(got, want) << bits;
    }
  }
}

TEST_P(Half, RoundTripKeepsEveryBitPattern) {
  const Format& format = GetParam();
  const auto quiet = static_cast<uint16_t>(1 << (format.mantissa_bits - 1));
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const uint16_t want =
        std::isnan(format.value(half)) ? static_cast<uint16_t>(half | quiet) : half;
    ASSERT_EQ(format.encode(format.decode(half)), want) << bits;
  }
}

TEST_P(Half, MidpointsGoToTheEvenNeighbour) {
  const Format& format = GetParam();
  for (uint16_t low = 0; low < format.infinity(); ++low) {
    // Above the largest finite value the next step would be 2^(max_exponent - bias).
    const auto high = static_cast<uint16_t>(low + 1);
    const double above = high == format.infinity()
                             ? std::ldexp(1.0, format.max_exponent() - format.bias())
                             : format.value(high);
    const double middle = (format.value(low) + above) / 2;
    const auto tie = static_cast<float>(middle);
    ASSERT_EQ(tie, middle) << "the midpoint must be a float";
    ASSERT_EQ(format.encode(tie), low % 2 == 0 ? low : high) << low;
    ASSERT_EQ(format.encode(std::nextafter(tie, 0.0f)), low);
    ASSERT_EQ(format.encode(std::nextafter(tie, kInfinity)), high);
    ASSERT_EQ(format.encode(-tie), (low % 2 == 0 ? low : high) | 0x8000);
  }
}

TEST_P(Half, EncodesRandomFloatsAsTheDefinitionSays) {
  const Format& format = GetParam();
  Rng rng;
  for (int i = 0; i < 500000; ++i) {
    const float x =
        i % 2 == 0 ? rng.any_finite()
                   : std::ldexp(rng.uniform(-2.0f, 2.0f), static_cast<int>(rng.integer(-28, 17)));
    const float got = format.decode(format.encode(x));
    ASSERT_EQ(got, format.rounded(x)) << x;
    ASSERT_EQ(std::signbit(got), std::signbit(x)) << x;
  }
}

TEST_P(Half, InfinityAndNan) {
  const Format& format = GetParam();
  EXPECT_EQ(format.encode(kInfinity), format.infinity());
  EXPECT_EQ(format.encode(-kInfinity), format.infinity() | 0x8000);
  EXPECT_EQ(format.encode(std::numeric_limits<float>::max()), format.infinity());
  for (const uint32_t payload : {0x00000001u, 0x003FFFFFu, 0x00400000u, 0x007FFFFFu}) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const uint16_t bits = format.encode(std::bit_cast<float>(0x7F800000u | sign | payload));
      EXPECT_TRUE(std::isnan(format.value(bits))) << payload;
      EXPECT_EQ(bits >= 0x8000, sign != 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Half,
                         ::testing::Values(Format{"f16", 5, 10, decode_f16, encode_f16},
                                           Format{"bf16", 8, 7, decode_bf16, encode_bf16}),
                         [](const auto& info) { return info.param.name; });

static_assert(core::encode_f16(1.0f) == 0x3C00 && core::encode_bf16(1.0f) == 0x3F80,
              "usable in constant expressions");

}  // namespace
}  // namespace dualgemm::test
