#include "number/rounded.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ptxsim {
namespace {

__extension__ using Uint128 = unsigned __int128;

// significand * 2^exponent; a bit that was lost below is kept in bit 0 (sticky), far below what
// rounding looks at.
struct Wide {
  bool negative;
  int exponent;
  Uint128 significand;
};

struct Target {
  int digits;         // of the significand, with the hidden bit
  int last_exponent;  // weight of the last bit of subnormals
  int end_exponent;   // values of this exponent and beyond do not fit
};
constexpr Target kFloat{24, -149, 128};
constexpr Target kDouble{53, -1074, 1024};

int top_bit(Uint128 value) {
  const uint64_t high = static_cast<uint64_t>(value >> 64);
  if (high != 0) return 127 - std::countl_zero(high);
  return 63 - std::countl_zero(static_cast<uint64_t>(value));
}

Uint128 shift_right_sticky(Uint128 value, int count) {
  if (count == 0) return value;
  if (count > 127) return value != 0 ? 1 : 0;
  const Uint128 lost = value & ((Uint128{1} << count) - 1);
  return (value >> count) | (lost != 0 ? 1u : 0u);
}

// `kept` units and a rest: below, at or above the half of a unit.
bool rounds_up(bool odd, Uint128 rest, Uint128 half, bool negative, Rounding rounding) {
  if (rest == 0) return false;
  switch (rounding) {
    case Rounding::kNearestEven:
      return rest > half || (rest == half && odd);
    case Rounding::kNearestAway:
      return rest >= half;
    case Rounding::kDown:
      return negative;
    case Rounding::kUp:
      return !negative;
    case Rounding::kZero:
      break;
  }
  return false;
}

double overflow(bool negative, const Target& target, Rounding rounding) {
  const bool finite = rounding == Rounding::kZero || (rounding == Rounding::kDown && !negative) ||
                      (rounding == Rounding::kUp && negative);
  const double largest =
      std::ldexp(1.0 - std::ldexp(1.0, -target.digits), target.end_exponent - 1) * 2;
  const double magnitude = finite ? largest : std::numeric_limits<double>::infinity();
  return negative ? -magnitude : magnitude;
}

// significand != 0.
double round_wide(const Wide& wide, const Target& target, Rounding rounding) {
  const int exponent = wide.exponent + top_bit(wide.significand);
  const int unit = std::max(exponent - target.digits + 1, target.last_exponent);
  const int drop = unit - wide.exponent;
  uint64_t kept;
  if (drop <= 0) {
    kept = static_cast<uint64_t>(wide.significand << -drop);
  } else {
    // Two bits under the unit are enough: the half and a sticky one.
    const Uint128 quarters =
        drop >= 2 ? shift_right_sticky(wide.significand, drop - 2) : wide.significand << 1;
    kept = static_cast<uint64_t>(quarters >> 2);
    if (rounds_up((kept & 1) != 0, quarters & 3, 2, wide.negative, rounding)) ++kept;
  }
  const double magnitude = std::ldexp(static_cast<double>(kept), unit);
  if (magnitude >= std::ldexp(1.0, target.end_exponent - 1) * 2)
    return overflow(wide.negative, target, rounding);
  return wide.negative ? -magnitude : magnitude;
}

Wide decompose(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const int field = static_cast<int>((bits >> 52) & 0x7ff);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  return {(bits >> 63) != 0, (field == 0 ? 1 : field) - 1075,
          field == 0 ? fraction : fraction | (uint64_t{1} << 52)};
}

void move_top_to(Wide& wide, int position) {
  const int shift = position - top_bit(wide.significand);
  wide.significand =
      shift >= 0 ? wide.significand << shift : shift_right_sticky(wide.significand, -shift);
  wide.exponent -= shift;
}

// Neither is zero. The sum may be.
Wide add_wide(Wide a, Wide b) {
  constexpr int kTop = 125;  // room for a carry, and 72 bits under a double's last one
  move_top_to(a, kTop);
  move_top_to(b, kTop);
  if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand))
    std::swap(a, b);
  b.significand = shift_right_sticky(b.significand, a.exponent - b.exponent);
  a.significand =
      a.negative == b.negative ? a.significand + b.significand : a.significand - b.significand;
  return a;
}

double fma_to(double a, double b, double c, const Target& target, Rounding rounding) {
  if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c)) return std::fma(a, b, c);
  const bool product_negative = std::signbit(a) != std::signbit(b);
  if (a == 0 || b == 0) {
    if (c != 0) return c;
    if (product_negative == std::signbit(c)) return c;
    return rounding == Rounding::kDown ? -0.0 : 0.0;
  }
  const Wide wa = decompose(a), wb = decompose(b);
  const Wide product{product_negative, wa.exponent + wb.exponent, wa.significand * wb.significand};
  if (c == 0) return round_wide(product, target, rounding);
  const Wide sum = add_wide(product, decompose(c));
  if (sum.significand == 0) return rounding == Rounding::kDown ? -0.0 : 0.0;
  return round_wide(sum, target, rounding);
}

double mul_to(double a, double b, const Target& target, Rounding rounding) {
  if (!std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0) return a * b;
  const Wide wa = decompose(a), wb = decompose(b);
  return round_wide(
      {wa.negative != wb.negative, wa.exponent + wb.exponent, wa.significand * wb.significand},
      target, rounding);
}

double div_to(double a, double b, const Target& target, Rounding rounding) {
  if (!std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0) return a / b;
  Wide wa = decompose(a);
  const Wide wb = decompose(b);
  move_top_to(wa, 126);
  const Uint128 quotient = wa.significand / wb.significand;
  const bool rest = wa.significand % wb.significand != 0;
  return round_wide(
      {wa.negative != wb.negative, wa.exponent - wb.exponent, quotient | (rest ? 1u : 0u)}, target,
      rounding);
}

double sqrt_to(double a, const Target& target, Rounding rounding) {
  if (!std::isfinite(a) || a <= 0) return std::sqrt(a);
  Wide w = decompose(a);
  move_top_to(w, 126);
  if (w.exponent % 2 != 0) {
    w.significand >>= 1;  // its low 73 bits are zero
    ++w.exponent;
  }
  Uint128 root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const Uint128 attempt = root | (Uint128{1} << bit);
    if (attempt * attempt <= w.significand) root = attempt;
  }
  const bool rest = root * root != w.significand;
  return round_wide({false, w.exponent / 2 - 1, (root << 1) | (rest ? 1u : 0u)}, target, rounding);
}

double integer_to(bool negative, uint64_t magnitude, const Target& target, Rounding rounding) {
  if (magnitude == 0) return 0;
  return round_wide({negative, 0, magnitude}, target, rounding);
}

}  // namespace

float fma_rounded(float a, float b, float c, Rounding rounding) {
  return static_cast<float>(fma_to(a, b, c, kFloat, rounding));
}
double fma_rounded(double a, double b, double c, Rounding rounding) {
  return fma_to(a, b, c, kDouble, rounding);
}

float mul_rounded(float a, float b, Rounding rounding) {
  return static_cast<float>(mul_to(a, b, kFloat, rounding));
}
double mul_rounded(double a, double b, Rounding rounding) {
  return mul_to(a, b, kDouble, rounding);
}

float div_rounded(float a, float b, Rounding rounding) {
  return static_cast<float>(div_to(a, b, kFloat, rounding));
}
double div_rounded(double a, double b, Rounding rounding) {
  return div_to(a, b, kDouble, rounding);
}

float sqrt_rounded(float a, Rounding rounding) {
  return static_cast<float>(sqrt_to(a, kFloat, rounding));
}
double sqrt_rounded(double a, Rounding rounding) { return sqrt_to(a, kDouble, rounding); }

float round_to_float(double value, Rounding rounding) {
  return static_cast<float>(mul_to(value, 1.0, kFloat, rounding));
}

float integer_to_float(bool negative, uint64_t magnitude, Rounding rounding) {
  return static_cast<float>(integer_to(negative, magnitude, kFloat, rounding));
}
double integer_to_double(bool negative, uint64_t magnitude, Rounding rounding) {
  return integer_to(negative, magnitude, kDouble, rounding);
}

}  // namespace ptxsim
