#include "number/formats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ptxsim {
namespace {

// In the order of the enumeration.
constexpr FormatInfo kFormats[] = {
    {5, 10, 15, true, 0x7bff, 0x7c00, 0x7fff},      // f16
    {8, 7, 127, true, 0x7f7f, 0x7f80, 0x7fff},      // bf16
    {8, 10, 127, true, 0x3fbff, 0x3fc00, 0x3ffff},  // tf32, before the shift to its place in a word
    {8, 23, 127, true, 0x7f7fffff, 0x7f800000, 0x7fffffff},  // f32
    {5, 2, 15, true, 0x7b, 0x7c, 0x7f},                      // e5m2
    {4, 3, 7, true, 0x7e, 0, 0x7f},                          // e4m3
    {4, 3, 7, false, 0x7e, 0, 0x7f},                         // ue4m3
    {3, 2, 3, true, 0x1f, 0, 0x1f},                          // e3m2
    {2, 3, 1, true, 0x1f, 0, 0x1f},                          // e2m3
    {2, 1, 1, true, 0x7, 0, 0x7},                            // e2m1
    {8, 0, 127, false, 0xfe, 0, 0xff},                       // ue8m0
};
constexpr int kTf32Shift = 13;

// Whether `rest` of `unit` (both in the same scale, rest < unit) rounds up a magnitude whose last
// bit is `odd`.
bool rounds_up(uint64_t rest, uint64_t unit, bool odd, bool negative, Rounding rounding) {
  if (rest == 0) return false;
  switch (rounding) {
    case Rounding::kNearestEven:
      return rest > unit / 2 || (rest == unit / 2 && odd);
    case Rounding::kNearestAway:
      return rest >= unit / 2;
    case Rounding::kDown:
      return negative;
    case Rounding::kUp:
      return !negative;
    case Rounding::kZero:
      break;
  }
  return false;
}

// What an overflow becomes in a format with infinities when it does not saturate.
bool overflows_to_infinity(bool negative, Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return false;
    case Rounding::kDown:
      return negative;
    case Rounding::kUp:
      return !negative;
    default:
      return true;
  }
}

uint32_t encode_ue8m0(double value, Rounding rounding, bool saturate) {
  constexpr uint32_t kNan = 0xff, kLargest = 0xfe;
  if (std::isnan(value)) return kNan;
  value = std::fabs(value);
  if (value <= 0x1p-127) return 0;
  if (value > 0x1p127 && (std::isinf(value) || rounding == Rounding::kUp || value >= 0x1p128))
    return saturate ? kLargest : kNan;
  int exponent;
  const double fraction = std::frexp(value, &exponent);  // in [1/2, 1)
  const bool up = rounding == Rounding::kUp && fraction != 0.5;
  return static_cast<uint32_t>(std::clamp(exponent - 1 + up + 127, 0, static_cast<int>(kLargest)));
}

// The magnitude of a finite value other than zero in units of the format's codes, rounded; it may
// be beyond max_finite.
uint32_t magnitude_code(const FormatInfo& f, double value, Rounding rounding) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const bool negative = (bits >> 63) != 0;
  int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  uint64_t significand = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == -1023) {
    exponent = -1022;
  } else {
    significand |= uint64_t{1} << 52;
  }
  const int least_exponent = 1 - f.bias;  // of normal values and of the subnormals
  const int code_exponent = std::max(exponent, least_exponent);
  if (code_exponent > f.bias + 1) return f.max_finite + 1;
  // The last place of the result has the weight 2^(code_exponent - fraction_bits), that of the
  // significand 2^(exponent - 52).
  const int drop = code_exponent - f.fraction_bits - (exponent - 52);
  uint64_t kept = 0, rest = significand != 0,
           unit = 4;  // far below the last place: any rest that is less than a half
  if (drop < 60) {
    kept = significand >> drop;
    rest = significand & ((uint64_t{1} << drop) - 1);
    unit = uint64_t{1} << drop;
  }
  if (rounds_up(rest, unit, (kept & 1) != 0, negative, rounding)) ++kept;
  return static_cast<uint32_t>(
      (static_cast<uint64_t>(code_exponent - least_exponent) << f.fraction_bits) + kept);
}

// 2^exponent, exponent in -1022 .. 1023, without the call that std::ldexp is: matrix operands are
// decoded element by element.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

}  // namespace

const FormatInfo& info_of(Format format) { return kFormats[static_cast<size_t>(format)]; }

unsigned bits_of(Format format) {
  if (format == Format::kTf32) return 32;
  const FormatInfo& f = info_of(format);
  if (format == Format::kUe4m3) return 8;
  return static_cast<unsigned>(f.has_sign + f.exponent_bits + f.fraction_bits);
}

float decode_to_float(Format format, uint32_t code) {
  const FormatInfo& f = info_of(format);
  if (format == Format::kF32) return std::bit_cast<float>(code);
  if (format == Format::kTf32) return std::bit_cast<float>(code & ~((1u << kTf32Shift) - 1));
  const int value_bits = f.exponent_bits + f.fraction_bits;
  const uint32_t magnitude = code & ((1u << value_bits) - 1);
  const bool negative = f.has_sign && ((code >> value_bits) & 1) != 0;
  float value;
  if (format == Format::kUe8m0) {
    value = magnitude == f.nan
                ? std::numeric_limits<float>::quiet_NaN()
                : static_cast<float>(power_of_two(static_cast<int>(magnitude) - f.bias));
  } else if (magnitude > std::max(f.max_finite, f.infinity)) {
    value = std::numeric_limits<float>::quiet_NaN();
  } else if (f.infinity != 0 && magnitude == f.infinity) {
    value = std::numeric_limits<float>::infinity();
  } else {
    const uint32_t exponent = magnitude >> f.fraction_bits;
    const uint32_t fraction = magnitude & ((1u << f.fraction_bits) - 1);
    const uint32_t significand = exponent == 0 ? fraction : fraction | (1u << f.fraction_bits);
    const int power = static_cast<int>(std::max(exponent, 1u)) - f.bias - f.fraction_bits;
    value = static_cast<float>(static_cast<double>(significand) * power_of_two(power));
  }
  return negative ? -value : value;
}

uint32_t encode(Format format, double value, Rounding rounding, bool saturate) {
  const FormatInfo& f = info_of(format);
  if (format == Format::kUe8m0) return encode_ue8m0(value, rounding, saturate);
  const bool is_tf32 = format == Format::kTf32;
  if (std::isnan(value)) return is_tf32 ? info_of(Format::kF32).nan : f.nan;
  const bool negative = std::signbit(value);
  uint32_t code = 0;
  if (std::isinf(value)) {
    code = saturate || f.infinity == 0 ? f.max_finite : f.infinity;
  } else if (value != 0) {
    code = magnitude_code(f, value, rounding);
    if (code > f.max_finite) {
      const bool to_infinity =
          !saturate && f.infinity != 0 && overflows_to_infinity(negative, rounding);
      code = to_infinity ? f.infinity : f.max_finite;
    }
  }
  if (negative && f.has_sign) code |= 1u << (f.exponent_bits + f.fraction_bits);
  if (negative && !f.has_sign) code = 0;
  return is_tf32 ? code << kTf32Shift : code;
}

}  // namespace ptxsim
