// What floating-point instructions share: registers' bits to values and back with .ftz, .sat and
// .relu, and the GPU's canonical NaNs (PTX ISA 9.0, "Floating-Point Instructions"; CUDA C++
// Programming Guide, "Floating-Point Standard").
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "ptxsim/number/formats.hpp"
#include "ptxsim/number/rounded.hpp"

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
// Results become registers: NaN canonical, subnormals flushed, or clamped to [0, 1] where a NaN is
// +0.
template <bool kFlush, bool kClamp>
uint32_t f32_out(float value) {
  if constexpr (kClamp) {
    value = value > 0 ? value : 0.0f;  // NaN and -0 become +0
    value = value < 1 ? value : 1.0f;
  }
  uint32_t bits = value != value ? kNanF32 : std::bit_cast<uint32_t>(value);
  return kFlush ? flush_f32(bits) : bits;
}
inline float f32_in(uint32_t bits, uint64_t modifiers) {
  return std::bit_cast<float>((modifiers & kFtz) != 0 ? flush_f32(bits) : bits);
}
inline uint32_t f32_out(float value, uint64_t modifiers) {
  const bool flush = (modifiers & kFtz) != 0;
  if ((modifiers & kSat) != 0)
    return flush ? f32_out<true, true>(value) : f32_out<false, true>(value);
  return flush ? f32_out<true, false>(value) : f32_out<false, false>(value);
}

inline uint64_t f64_out(double value) {
  return value != value ? kNanF64 : std::bit_cast<uint64_t>(value);
}

// The two 16-bit formats.
struct HalfF16 {
  static float decode(uint16_t bits) { return f16_to_float(bits); }
  static uint16_t encode(float value) { return float_to_f16(value); }
  static uint16_t flush(uint16_t bits) { return flush_f16(bits); }
  static constexpr uint16_t kExponent = 0x7c00, kOne = 0x3c00;
};
struct HalfBf16 {
  static float decode(uint16_t bits) { return bf16_to_float(bits); }
  static uint16_t encode(float value) { return float_to_bf16(value); }
  static uint16_t flush(uint16_t bits) {
    return static_cast<uint16_t>((bits & 0x7f80u) == 0 ? bits & 0x8000u : bits);
  }
  static constexpr uint16_t kExponent = 0x7f80, kOne = 0x3f80;
};
template <class H>
bool is_nan_half(uint16_t bits) {
  return (bits & 0x7fffu) > H::kExponent;
}
template <class H>
float half_in(uint16_t bits, uint64_t modifiers) {
  return H::decode((modifiers & kFtz) != 0 ? H::flush(bits) : bits);
}
template <class H>
uint16_t half_out(float value, uint64_t modifiers) {
  uint16_t bits = H::encode(value);
  if ((modifiers & kFtz) != 0) bits = H::flush(bits);
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
