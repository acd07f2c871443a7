// What floating-point instructions share: registers' bits to values and back with .ftz, .sat and
// .relu, and the GPU's canonical NaNs (PTX ISA 9.0, "Floating-Point Instructions"; CUDA C++
// Programming Guide, "Floating-Point Standard").
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "number/formats.hpp"
#include "number/rounded.hpp"

namespace ptxsim {

inline constexpr uint32_t kNanF32 = 0x7fffffffu;
inline constexpr uint64_t kNanF64 = 0xfff8000000000000u;
inline constexpr uint16_t kNanHalf = 0x7fffu;  // f16 and bf16

// Modifiers as Insn::imm.
inline constexpr uint64_t kRoundingMask = 7, kFtz = 8, kSat = 16, kRelu = 32, kNanResult = 64,
                          kXorSign = 128, kAbs = 256;
inline Rounding rounding_of(uint64_t modifiers) {
  return static_cast<Rounding>(modifiers & kRoundingMask);
}

inline uint32_t flush_f32(uint32_t bits) {
  return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
}
inline uint16_t flush_f16(uint16_t bits) {
  return static_cast<uint16_t>((bits & 0x7c00u) == 0 ? bits & 0x8000u : bits);
}

template <bool kFlush>
float f32_in(uint32_t bits) {
  return std::bit_cast<float>(kFlush ? flush_f32(bits) : bits);
}
// Whether .ftz makes a zero of a result: when it is below the normal range after rounding to the
// format's digits with an unbounded exponent, as an H200 does it. So 2^-126 (1 - 2^-24), a float's
// digits, is flushed; 2^-126 (1 - 2^-26) is not. `exact` is the result before rounding, exact or
// rounded to odd.
inline constexpr double kFlushedBelowF32 =
    0x1.ffffffp-127;  // to nearest: half a digit under 2^-126
inline bool is_flushed_f32(double exact, Rounding rounding) {
  const double magnitude = std::fabs(exact);
  if (rounding == Rounding::kNearestEven) return magnitude < kFlushedBelowF32;
  const bool away = rounding == (exact > 0 ? Rounding::kUp : Rounding::kDown);
  return away ? magnitude <= 0x1.fffffep-127 : magnitude < 0x1p-126;
}

// A result becomes a register: [0, 1] with .sat, where a NaN is +0; else a NaN is the canonical
// one.
template <bool kClamp>
uint32_t f32_out(float value) {
  if constexpr (kClamp) {
    value = value > 0 ? value : 0.0f;  // NaN and -0 become +0
    value = value < 1 ? value : 1.0f;
  }
  return value != value ? kNanF32 : std::bit_cast<uint32_t>(value);
}
// The nearest float of `exact`, a double that is exact or rounded to odd; with .ftz.
template <bool kClamp>
uint32_t f32_flushed_out(double exact) {
  const float value = static_cast<float>(exact);
  return f32_out<kClamp>(std::fabs(exact) < kFlushedBelowF32 ? std::copysign(0.0f, value) : value);
}
inline float f32_in(uint32_t bits, uint64_t modifiers) {
  return std::bit_cast<float>((modifiers & kFtz) != 0 ? flush_f32(bits) : bits);
}
// `value`, rounded from `exact`; .ftz and .sat as the modifiers say.
inline uint32_t f32_out(float value, double exact, uint64_t modifiers) {
  if ((modifiers & kFtz) != 0 && is_flushed_f32(exact, rounding_of(modifiers)))
    value = std::copysign(0.0f, value);
  return (modifiers & kSat) != 0 ? f32_out<true>(value) : f32_out<false>(value);
}

// f64 keeps a NaN operand's sign and payload and makes it quiet; PTX leaves open whose. The order
// of the operands here is that of an H200. Other NaNs are kNanF64.
inline bool is_nan_f64(uint64_t bits) { return (bits << 1) > 0xffe0000000000000u; }
inline uint64_t quiet_f64(uint64_t nan) { return nan | (uint64_t{1} << 51); }
inline uint64_t f64_out(double value, uint64_t first, uint64_t second = 0, uint64_t third = 0) {
  if (value == value) return std::bit_cast<uint64_t>(value);
  for (const uint64_t operand : {first, second, third})
    if (is_nan_f64(operand)) return quiet_f64(operand);
  return kNanF64;
}

// The two 16-bit formats.
struct HalfF16 {
  static float decode(uint16_t bits) { return f16_to_float(bits); }
  static uint16_t encode(float value) { return float_to_f16(value); }
  static uint16_t flush(uint16_t bits) { return flush_f16(bits); }
  static constexpr uint16_t kExponent = 0x7c00, kOne = 0x3c00;
  static constexpr float kFlushedBelow = 0x1.ffep-15f;
};
struct HalfBf16 {
  static float decode(uint16_t bits) { return bf16_to_float(bits); }
  static uint16_t encode(float value) { return float_to_bf16(value); }
  static uint16_t flush(uint16_t bits) {
    return static_cast<uint16_t>((bits & 0x7f80u) == 0 ? bits & 0x8000u : bits);
  }
  static constexpr uint16_t kExponent = 0x7f80, kOne = 0x3f80;
  static constexpr float kFlushedBelow = 0x1.ffp-127f;
};
template <class H>
bool is_nan_half(uint16_t bits) {
  return (bits & 0x7fffu) > H::kExponent;
}
template <class H>
float half_in(uint16_t bits, uint64_t modifiers) {
  return H::decode((modifiers & kFtz) != 0 ? H::flush(bits) : bits);
}
// `value` is exact or rounded to odd; .ftz as for f32.
template <class H>
uint16_t half_out(float value, uint64_t modifiers) {
  if ((modifiers & kFtz) != 0 && std::fabs(value) < H::kFlushedBelow)
    value = std::copysign(0.0f, value);
  const uint16_t bits = H::encode(value);
  if ((modifiers & kSat) != 0) {
    if (is_nan_half<H>(bits) || (bits & 0x8000u) != 0) return 0;
    return bits > H::kOne ? H::kOne : bits;
  }
  if ((modifiers & kRelu) != 0 && (bits & 0x8000u) != 0) return 0;
  return bits;
}

// Both halves of a word.
template <auto kFunction>
uint32_t unary_halves(uint32_t a, uint64_t modifiers) {
  return kFunction(static_cast<uint16_t>(a), modifiers) |
         (static_cast<uint32_t>(kFunction(static_cast<uint16_t>(a >> 16), modifiers)) << 16);
}
template <auto kFunction>
uint32_t binary_halves(uint32_t a, uint32_t b, uint64_t modifiers) {
  return kFunction(static_cast<uint16_t>(a), static_cast<uint16_t>(b), modifiers) |
         (static_cast<uint32_t>(
              kFunction(static_cast<uint16_t>(a >> 16), static_cast<uint16_t>(b >> 16), modifiers))
          << 16);
}
template <auto kFunction>
uint32_t ternary_halves(uint32_t a, uint32_t b, uint32_t c, uint64_t modifiers) {
  return kFunction(static_cast<uint16_t>(a), static_cast<uint16_t>(b), static_cast<uint16_t>(c),
                   modifiers) |
         (static_cast<uint32_t>(kFunction(static_cast<uint16_t>(a >> 16),
                                          static_cast<uint16_t>(b >> 16),
                                          static_cast<uint16_t>(c >> 16), modifiers))
          << 16);
}

}  // namespace ptxsim
