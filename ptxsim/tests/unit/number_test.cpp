// Number formats: every code and every midpoint between neighbours; arithmetic with a chosen
// rounding against the host's.
#include <gtest/gtest.h>

#include <array>
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "number/formats.hpp"
#include "number/rounded.hpp"

namespace ptxsim {
namespace {

constexpr std::array kSmallFormats = {Format::kF16,   Format::kBf16, Format::kE5m2, Format::kE4m3,
                                      Format::kUe4m3, Format::kE3m2, Format::kE2m3, Format::kE2m1};
constexpr std::array kRoundings = {Rounding::kNearestEven, Rounding::kZero, Rounding::kDown,
                                   Rounding::kUp, Rounding::kNearestAway};

uint32_t sign_bit(Format format) {
  return info_of(format).has_sign ? 1u << (bits_of(format) - 1) : 0;
}

TEST(NumberFormats, E2m1HasTheEightMagnitudes) {
  const float magnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (uint32_t code = 0; code < 8; ++code) {
    EXPECT_EQ(decode_to_float(Format::kE2m1, code), magnitudes[code]);
    EXPECT_EQ(decode_to_float(Format::kE2m1, code | 8), -magnitudes[code]);
    EXPECT_EQ(decode_to_float(Format::kE2m1, code | 0xf0), magnitudes[code])
        << "bits above the code are ignored";
  }
}

// Values from the OCP and IEEE tables, each at an end of a range.
TEST(NumberFormats, EndsOfTheRanges) {
  struct Row {
    Format format;
    uint32_t code;
    double value;
  };
  const Row rows[] = {
      {Format::kF16, 0x0001, 0x1p-24},
      {Format::kF16, 0x03ff, 0x3ffp-24},
      {Format::kF16, 0x0400, 0x1p-14},
      {Format::kF16, 0x3c00, 1},
      {Format::kF16, 0x7bff, 65504},
      {Format::kBf16, 0x0001, 0x1p-133},
      {Format::kBf16, 0x3f80, 1},
      {Format::kBf16, 0x7f7f, 0x1.fep127},
      {Format::kE5m2, 0x01, 0x1p-16},
      {Format::kE5m2, 0x7b, 57344},
      {Format::kE4m3, 0x01, 0x1p-9},
      {Format::kE4m3, 0x08, 0x1p-6},
      {Format::kE4m3, 0x38, 1},
      {Format::kE4m3, 0x7e, 448},
      {Format::kUe4m3, 0xfe, 448},
      {Format::kE3m2, 0x01, 0x1p-4},
      {Format::kE3m2, 0x1f, 28},
      {Format::kE2m3, 0x01, 0.125},
      {Format::kE2m3, 0x1f, 7.5},
      {Format::kUe8m0, 0x00, 0x1p-127},
      {Format::kUe8m0, 0x7f, 1},
      {Format::kUe8m0, 0xfe, 0x1p127},
      {Format::kTf32, 0x3f802000, 1 + 0x1p-10},
      {Format::kTf32, 0x3f801fff, 1},
  };
  for (const Row& row : rows)
    EXPECT_EQ(decode_to_float(row.format, row.code), row.value)
        << "format " << int(row.format) << " code " << row.code;
  for (const uint32_t nan : {0x7fu, 0xffu})
    EXPECT_TRUE(std::isnan(decode_to_float(Format::kE4m3, nan)));
  EXPECT_TRUE(std::isnan(decode_to_float(Format::kUe8m0, 0xff)));
  EXPECT_TRUE(std::isnan(decode_to_float(Format::kE5m2, 0x7d)));
  EXPECT_EQ(decode_to_float(Format::kE5m2, 0xfc), -std::numeric_limits<float>::infinity());
}

TEST(NumberFormats, EveryCodeComesBackUnderEveryRounding) {
  for (const Format format : kSmallFormats) {
    for (uint32_t magnitude = 0; magnitude <= info_of(format).max_finite; ++magnitude) {
      for (const uint32_t sign : {0u, sign_bit(format)}) {
        const uint32_t code = magnitude | sign;
        for (const Rounding rounding : kRoundings)
          ASSERT_EQ(encode(format, decode_to_float(format, code), rounding), code)
              << "format " << int(format) << " rounding " << int(rounding);
      }
    }
  }
}

// The code of x, which lies strictly between the values of `below` and below + 1; `position`:
// before, at or after the middle (-1, 0, 1).
uint32_t expected_between(uint32_t below, int position, bool negative, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearestEven:
      return position < 0 ? below : position > 0 ? below + 1 : below + (below & 1);
    case Rounding::kNearestAway:
      return position < 0 ? below : below + 1;
    case Rounding::kDown:
      return negative ? below + 1 : below;
    case Rounding::kUp:
      return negative ? below : below + 1;
    default:
      return below;
  }
}

TEST(NumberFormats, EveryGapRoundsByTheRule) {
  for (const Format format : kSmallFormats) {
    for (uint32_t below = 0; below < info_of(format).max_finite; ++below) {
      const double low = decode_to_float(format, below), high = decode_to_float(format, below + 1);
      ASSERT_LT(low, high) << "format " << int(format) << " code " << below;
      const double middle = (low + high) / 2;  // exact
      for (const int position : {-1, 0, 1}) {
        const double x = position == 0 ? middle : std::nextafter(middle, position < 0 ? low : high);
        for (const Rounding rounding : kRoundings) {
          ASSERT_EQ(encode(format, x, rounding), expected_between(below, position, false, rounding))
              << "format " << int(format) << " value " << x << " rounding " << int(rounding);
          if (sign_bit(format) == 0) continue;
          ASSERT_EQ(encode(format, -x, rounding),
                    expected_between(below, position, true, rounding) | sign_bit(format))
              << "format " << int(format) << " value " << -x << " rounding " << int(rounding);
        }
      }
    }
  }
}

TEST(NumberFormats, BeyondTheLargestValue) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const Format format : kSmallFormats) {
    const FormatInfo& info = info_of(format);
    const double largest = decode_to_float(format, info.max_finite);
    const double gap = largest - decode_to_float(format, info.max_finite - 1);
    const uint32_t nearest = info.infinity != 0 ? info.infinity : info.max_finite;
    EXPECT_EQ(encode(format, largest + gap * 0.499, Rounding::kNearestEven), info.max_finite);
    EXPECT_EQ(encode(format, largest + gap * 0.5, Rounding::kNearestEven), nearest) << int(format);
    EXPECT_EQ(encode(format, largest + gap * 0.25, Rounding::kUp), nearest);
    EXPECT_EQ(encode(format, 1e300, Rounding::kZero), info.max_finite);
    EXPECT_EQ(encode(format, 1e300, Rounding::kDown), info.max_finite);
    EXPECT_EQ(encode(format, 1e300, Rounding::kNearestEven, true), info.max_finite);
    EXPECT_EQ(encode(format, inf, Rounding::kZero, true), info.max_finite);
    EXPECT_EQ(encode(format, inf, Rounding::kZero), nearest);
    EXPECT_EQ(encode(format, std::nan(""), Rounding::kNearestEven, true), info.nan);
    if (sign_bit(format) != 0) {
      EXPECT_EQ(encode(format, -1e300, Rounding::kDown), nearest | sign_bit(format));
      EXPECT_EQ(encode(format, -inf, Rounding::kNearestEven, true),
                info.max_finite | sign_bit(format));
    }
  }
}

TEST(NumberFormats, ScalesArePowersOfTwo) {
  for (uint32_t code = 0; code < 0xff; ++code) {
    const double value = decode_to_float(Format::kUe8m0, code);
    EXPECT_EQ(value, std::ldexp(1.0, static_cast<int>(code) - 127));
    for (const Rounding rounding : {Rounding::kUp, Rounding::kZero})
      EXPECT_EQ(encode(Format::kUe8m0, value, rounding, true), code);
    const double above = std::nextafter(value, 1e300);
    EXPECT_EQ(encode(Format::kUe8m0, above, Rounding::kUp, true), std::min(code + 1, 0xfeu));
    EXPECT_EQ(encode(Format::kUe8m0, above, Rounding::kZero, true), code);
    EXPECT_EQ(encode(Format::kUe8m0, -value, Rounding::kUp, true), code) << "the sign is dropped";
  }
  EXPECT_EQ(encode(Format::kUe8m0, 0, Rounding::kUp), 0u);
  EXPECT_EQ(encode(Format::kUe8m0, 0x1p-140, Rounding::kUp), 0u);
  EXPECT_EQ(encode(Format::kUe8m0, std::nan(""), Rounding::kUp, true), 0xffu);
  EXPECT_EQ(encode(Format::kUe8m0, INFINITY, Rounding::kZero, true), 0xfeu);
  EXPECT_EQ(encode(Format::kUe8m0, INFINITY, Rounding::kZero, false), 0xffu);
  EXPECT_EQ(encode(Format::kUe8m0, 0x1.8p127, Rounding::kUp, false), 0xffu);
}

TEST(NumberFormats, Tf32KeepsTenBitsOfFraction) {
  EXPECT_EQ(encode(Format::kTf32, 1 + 0x1p-11, Rounding::kNearestEven), 0x3f800000u);
  EXPECT_EQ(encode(Format::kTf32, 1 + 0x1p-11, Rounding::kNearestAway), 0x3f802000u);
  EXPECT_EQ(encode(Format::kTf32, 1 + 3 * 0x1p-11, Rounding::kNearestEven), 0x3f804000u);
  EXPECT_EQ(encode(Format::kTf32, -1 - 0x1p-10 - 0x1p-12, Rounding::kZero), 0xbf802000u);
  EXPECT_EQ(encode(Format::kTf32, std::numeric_limits<float>::max(), Rounding::kNearestEven),
            0x7f800000u);
  EXPECT_EQ(encode(Format::kTf32, std::numeric_limits<float>::max(), Rounding::kNearestEven, true),
            0x7f7fe000u);
  EXPECT_EQ(encode(Format::kTf32, std::nan(""), Rounding::kNearestAway), 0x7fffffffu);
}

TEST(NumberFormats, StraightLineFormsAgreeForEveryCode) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const auto half = static_cast<uint16_t>(code);
    const float f16 = decode_to_float(Format::kF16, code),
                bf16 = decode_to_float(Format::kBf16, code);
    if (std::isnan(f16)) {
      EXPECT_TRUE(std::isnan(f16_to_float(half)));
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(f16_to_float(half)), std::bit_cast<uint32_t>(f16));
    }
    if (std::isnan(bf16)) {
      EXPECT_TRUE(std::isnan(bf16_to_float(half)));
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(bf16_to_float(half)), std::bit_cast<uint32_t>(bf16));
    }
    if (code < 0x100) {
      const float e5m2 = decode_to_float(Format::kE5m2, code);
      EXPECT_TRUE(std::isnan(e5m2) ? std::isnan(e5m2_to_float(code)) : e5m2_to_float(code) == e5m2);
    }
  }
}

void expect_half_conversions(float value) {
  ASSERT_EQ(float_to_f16(value), encode(Format::kF16, value, Rounding::kNearestEven)) << value;
  ASSERT_EQ(float_to_bf16(value), encode(Format::kBf16, value, Rounding::kNearestEven)) << value;
}

TEST(NumberFormats, StraightLineEncodersAgreeAtEveryEdge) {
  for (uint32_t high = 0; high < 0x10000;
       ++high) {  // every sign, exponent and 7 bits; the edges of what is dropped
    for (const uint32_t low :
         {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      expect_half_conversions(std::bit_cast<float>((high << 16) | low));
  }
  std::mt19937 random(20240611);
  for (int i = 0; i < 300000; ++i)
    expect_half_conversions(std::bit_cast<float>(static_cast<uint32_t>(random())));
}

// Random operands whose exponents meet often, with the special values among them.
template <class T, class Bits>
class Operands {
 public:
  explicit Operands(uint32_t seed) : random_(seed) {}
  T next() {
    constexpr int kFraction = std::numeric_limits<T>::digits - 1;
    const uint64_t kind = random_() % 16;
    const Bits all = static_cast<Bits>(random_());
    if (kind == 0) return kSpecial[random_() % std::size(kSpecial)];
    if (kind < 4) return std::bit_cast<T>(all);
    if (kind < 6)
      return std::bit_cast<T>(
          static_cast<Bits>(all & ((Bits{1} << (kFraction + 1)) - 1)));  // near subnormal
    const Bits exponent = static_cast<Bits>(std::numeric_limits<T>::max_exponent - 1 +
                                            static_cast<int>(random_() % 61) - 30);
    const Bits fraction_mask = kind < 10 ? static_cast<Bits>(~((Bits{1} << (kFraction - 4)) - 1))
                                         : static_cast<Bits>(~Bits{0});
    const Bits bits =
        (all & ((Bits{1} << kFraction) - 1) & fraction_mask) | (exponent << kFraction);
    const T value = std::bit_cast<T>(bits);
    return (all >> (8 * sizeof(Bits) - 1)) != 0 ? -value : value;
  }

 private:
  static constexpr T kSpecial[] = {T{0},
                                   -T{0},
                                   T{1},
                                   -T{1},
                                   std::numeric_limits<T>::max(),
                                   -std::numeric_limits<T>::max(),
                                   std::numeric_limits<T>::min(),
                                   std::numeric_limits<T>::denorm_min(),
                                   -std::numeric_limits<T>::denorm_min(),
                                   std::numeric_limits<T>::infinity(),
                                   -std::numeric_limits<T>::infinity(),
                                   std::numeric_limits<T>::quiet_NaN()};
  std::mt19937_64 random_;
};

int host_mode(Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return FE_TOWARDZERO;
    case Rounding::kDown:
      return FE_DOWNWARD;
    case Rounding::kUp:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

// f under the host's rounding mode; operands and result pass through volatile so that nothing is
// computed elsewhere.
template <class T, class F>
T on_host(Rounding rounding, F f) {
  std::fesetround(host_mode(rounding));
  volatile T result = f();
  std::fesetround(FE_TONEAREST);
  return result;
}

template <class T, class Bits>
void expect_same(T ours, T host, const char* what, T a, T b, T c, Rounding rounding) {
  if (std::isnan(host)) {
    ASSERT_TRUE(std::isnan(ours)) << what << ' ' << a << ' ' << b << ' ' << c;
  } else {
    ASSERT_EQ(std::bit_cast<Bits>(ours), std::bit_cast<Bits>(host))
        << what << " of " << std::hexfloat << a << ' ' << b << ' ' << c << " rounding "
        << int(rounding) << ": " << ours << ", host " << host;
  }
}

template <class T, class Bits>
void compare_with_host(uint32_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Operands<T, Bits> operands(seed);
  for (int i = 0; i < 60000; ++i) {
    volatile T a = operands.next(), b = operands.next(), c = operands.next();
    for (const Rounding r :
         {Rounding::kNearestEven, Rounding::kZero, Rounding::kDown, Rounding::kUp}) {
      const auto check = [&](const char* what, T ours, T host) {
        expect_same<T, Bits>(ours, host, what, a, b, c, r);
      };
      check("add", fma_rounded(T{a}, T{1}, T{b}, r), on_host<T>(r, [&] { return a + b; }));
      check("mul", mul_rounded(T{a}, T{b}, r), on_host<T>(r, [&] { return a * b; }));
      check("fma", fma_rounded(T{a}, T{b}, T{c}, r),
            on_host<T>(r, [&] { return std::fma(T{a}, T{b}, T{c}); }));
      check("div", div_rounded(T{a}, T{b}, r), on_host<T>(r, [&] { return a / b; }));
      const T positive = std::fabs(T{a});
      check("sqrt", sqrt_rounded(positive, r), on_host<T>(r, [&] {
              volatile T x = positive;
              return std::sqrt(T{x});
            }));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(RoundedArithmetic, FloatsAgreeWithTheHost) { compare_with_host<float, uint32_t>(11); }
TEST(RoundedArithmetic, DoublesAgreeWithTheHost) { compare_with_host<double, uint64_t>(12); }

TEST(RoundedArithmetic, NarrowingAndIntegersAgreeWithTheHost) {
  Operands<double, uint64_t> operands(13);
  std::mt19937_64 random(14);
  for (int i = 0; i < 100000; ++i) {
    volatile double value = operands.next();
    const volatile uint64_t integer = random() >> (random() % 64);
    for (const Rounding r :
         {Rounding::kNearestEven, Rounding::kZero, Rounding::kDown, Rounding::kUp}) {
      const float host = on_host<float>(r, [&] { return static_cast<float>(value); });
      expect_same<float, uint32_t>(round_to_float(value, r), host, "narrow",
                                   static_cast<float>(value), 0, 0, r);
      ASSERT_EQ(integer_to_float(false, integer, r),
                round_to_float(integer_to_double(false, integer, r), r))
          << integer;
      const Rounding mirrored = r == Rounding::kDown ? Rounding::kUp
                                : r == Rounding::kUp ? Rounding::kDown
                                                     : r;
      ASSERT_EQ(integer_to_double(true, integer, r), -integer_to_double(false, integer, mirrored))
          << integer;
    }
    ASSERT_EQ(integer_to_double(false, integer, Rounding::kNearestEven),
              static_cast<double>(integer))
        << integer;
    ASSERT_EQ(integer_to_float(false, integer, Rounding::kNearestEven), static_cast<float>(integer))
        << integer;
  }
}

// Rounding to odd: the value toward zero, with an odd last bit exactly when something was lost.
TEST(RoundedArithmetic, RoundToOddMarksWhatWasLost) {
  Operands<float, uint32_t> operands(15);
  for (int i = 0; i < 200000; ++i) {
    const float a = operands.next(), b = operands.next(), c = operands.next();
    const double ours = fma_to_odd(a, b, c);
    const auto wide = [&](Rounding r) {
      return fma_rounded(static_cast<double>(a), static_cast<double>(b), static_cast<double>(c), r);
    };
    if (!std::isfinite(wide(Rounding::kZero))) {
      ASSERT_FALSE(std::isfinite(ours)) << a << ' ' << b << ' ' << c;
      continue;
    }
    const bool exact = wide(Rounding::kDown) == wide(Rounding::kUp);
    const uint64_t expected = std::bit_cast<uint64_t>(wide(Rounding::kZero)) | (exact ? 0u : 1u);
    if (ours != 0) {
      ASSERT_EQ(std::bit_cast<uint64_t>(ours), expected)
          << std::hexfloat << a << ' ' << b << ' ' << c;
    } else {
      ASSERT_EQ(wide(Rounding::kZero), 0.0);
    }
    const float narrow = float_to_odd(ours);
    const float toward_zero = round_to_float(ours, Rounding::kZero);
    const uint32_t odd =
        std::bit_cast<uint32_t>(toward_zero) | (static_cast<double>(toward_zero) == ours ? 0u : 1u);
    ASSERT_EQ(std::bit_cast<uint32_t>(narrow), odd) << std::hexfloat << ours;
  }
}

}  // namespace
}  // namespace ptxsim
