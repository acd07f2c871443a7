// Arithmetic of float and double with a chosen rounding, exact up to the one rounding at the end:
// integers, no changes of the host's rounding mode. Operands of the float forms are exact in a
// double.
#pragma once

#include "number/formats.hpp"

namespace ptxsim {

// a * b + c. A zero result of opposite addends is +0, -0 when rounding down (IEEE 754-2019, 6.3).
float fma_rounded(float a, float b, float c, Rounding rounding);
double fma_rounded(double a, double b, double c, Rounding rounding);

float mul_rounded(float a, float b, Rounding rounding);
double mul_rounded(double a, double b, Rounding rounding);

float div_rounded(float a, float b, Rounding rounding);
double div_rounded(double a, double b, Rounding rounding);

float sqrt_rounded(float a, Rounding rounding);
double sqrt_rounded(double a, Rounding rounding);

// A double or an integer, rounded to a float or double.
float round_to_float(double value, Rounding rounding);
float integer_to_float(bool negative, uint64_t magnitude, Rounding rounding);
double integer_to_double(bool negative, uint64_t magnitude, Rounding rounding);

// The double next to `nearest` (the rounded result of an operation) that has an odd last bit when
// `error`, the exact rest, is not zero. Rounding it again to a format of at most 51 bits gives what
// one rounding of the exact value would.
inline double to_odd(double nearest, double error) {
  const uint64_t bits = std::bit_cast<uint64_t>(nearest);
  const uint64_t outward = (error > 0) == (nearest > 0) ? 1 : ~uint64_t{0};
  const bool adjust = error != 0 && (bits & 1) == 0;
  return std::bit_cast<double>(adjust ? bits + outward : bits);
}

// a * b + c of floats, as a double rounded to odd; NaNs and infinities come out as such.
inline double fma_to_odd(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);  // exact: 48 bits
  const double sum = product + c;
  const double from_c = sum - product;
  const double error =
      (product - (sum - from_c)) + (c - from_c);  // exact (two-sum); NaN beside infinities
  return error == error ? to_odd(sum, error) : sum;
}

// A double as a float rounded to odd: rounding that to f16 or bf16 is one rounding of the double.
inline float float_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double error = value - static_cast<double>(nearest);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (error == 0 || error != error || (bits & 1) != 0) return nearest;
  return std::bit_cast<float>((error > 0) == (value > 0) ? bits + 1 : bits - 1);
}

}  // namespace ptxsim
