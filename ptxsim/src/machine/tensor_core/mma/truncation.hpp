// Arithmetic of a tensor core's adder, in doubles that hold every intermediate value exactly.
//
// A multiply-accumulate of a tensor core aligns its terms to the largest exponent among them, cuts
// each off (toward zero) at a number of fractional bits relative to that exponent, adds what is
// left exactly and rounds the sum once. (Model of microsoft/MMA-Sim, arXiv 2511.10909; see
// docs/evidence.md for what of it was compared with silicon.) Terms have at most 36 significant
// bits, of which 35 are fractional, and there are at most 65 of them: all sums stay below 2^53
// units.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ptxsim {

// The exponent of a zero operand, as of the smallest normal float.
inline constexpr double kZeroExponent = -126;

// 2^exponent of an integral exponent in -1022 .. 1023. Adding 1.5 * 2^52 puts the integer into the
// low bits of the double, from where it moves to the exponent field: no conversion instruction,
// which many vector units lack for 64 bits.
inline double power_of_two(double exponent) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(exponent + 1023.0 + 0x1.8p52) << 52);
}

// Exponent of a float's significand; zeros and subnormals have that of the smallest normal.
inline double exponent_of_float(uint32_t bits) {
  const int32_t field = static_cast<int32_t>(bits >> 23 & 0xff);
  return static_cast<double>((field > 1 ? field : 1) - 127);
}

// To a float, toward zero; what reaches 2^128 becomes infinite; every NaN is 0x7fffffff; no -0.
inline uint32_t float_toward_zero(double value) {
  const float nearest = static_cast<float>(value);
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const double magnitude = std::fabs(value);
  // One step back when rounding to nearest went up. An overflow to infinity goes back to the
  // largest float unless the value has no exponent as a float.
  const bool too_large = std::fabs(static_cast<double>(nearest)) > magnitude;
  bits -= static_cast<uint32_t>(too_large & (magnitude < 0x1p128));
  bits = bits == 0x80000000u ? 0u : bits;
  return value != value ? 0x7fffffffu : bits;
}

}  // namespace ptxsim
