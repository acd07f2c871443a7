// Number formats of PTX with fewer bits than float: every value of each is exactly a float.
// Sources: PTX ISA 9.0, "Alternate Floating-Point Data Formats" and "Packed Floating-Point Data
// Types"; OCP OFP8 and Microscaling formats. Bit order: sign, exponent, significand.
//
//   format  bits    bias  largest  infinity  NaN         smallest subnormal
//   f16     1+5+10    15    65504  yes       yes         2^-24
//   bf16    1+8+7    127  ~3.4e38  yes       yes         2^-133
//   tf32    1+8+10   127  ~3.4e38  yes       yes         2^-136; the word's 13 low bits are ignored
//   e5m2    1+5+2     15    57344  yes       yes         2^-16
//   e4m3    1+4+3      7      448  no        S.1111.111  2^-9
//   ue4m3   0+4+3      7      448  no        1111.111    2^-9; bit 7 is ignored
//   e3m2    1+3+2      3       28  no        no          2^-4
//   e2m3    1+2+3      1      7.5  no        no          2^-3
//   e2m1    1+2+1      1        6  no        no          1/2
//   ue8m0   0+8+0    127    2^127  no        0xff        none; there is no zero: code 0 is 2^-127
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace ptxsim {

enum class Format : uint8_t {
  kF16,
  kBf16,
  kTf32,
  kF32,
  kE5m2,
  kE4m3,
  kUe4m3,
  kE3m2,
  kE2m3,
  kE2m1,
  kUe8m0
};

enum class Rounding : uint8_t {
  kNearestEven,  // .rn
  kZero,         // .rz
  kDown,         // .rm, to minus infinity
  kUp,           // .rp, to plus infinity
  kNearestAway,  // .rna, ties away from zero
};

struct FormatInfo {
  int exponent_bits;
  int fraction_bits;
  int bias;
  bool has_sign;
  uint32_t max_finite;  // code of the largest finite value, without a sign
  uint32_t infinity;    // 0: the format has none
  uint32_t nan;  // the code that a NaN becomes (PTX ISA, "cvt"): e2m1, e2m3, e3m2 have no NaN and
                 // give +MAX_NORM
};
const FormatInfo& info_of(Format format);
unsigned bits_of(Format format);  // of a code in memory: tf32 and f32 32, e2m1 4, e2m3 and e3m2 6

// The value of a code, exact. Bits above those of the format are ignored. NaN codes give a quiet
// NaN.
float decode_to_float(Format format, uint32_t code);

// The code nearest to `value` in the sense of `rounding`. `saturate`: what is too large, infinities
// included, becomes the largest finite value (.satfinite); formats without an infinity always
// saturate. Subnormals are kept. ue8m0: rounds to a power of two, kUp or kZero; the sign of `value`
// is dropped (PTX gives no meaning to negative inputs), 0 gives code 0, NaN and, without
// `saturate`, overflow 0xff.
uint32_t encode(Format format, double value, Rounding rounding, bool saturate = false);

// Straight-line forms for inner loops.
inline float f16_to_float(uint16_t code) {
  // The exponent is moved to its place in a float and the bias corrected by a multiplication, which
  // also makes subnormals right; infinities and NaNs then need the largest exponent.
  const uint32_t magnitude = static_cast<uint32_t>(code & 0x7fffu) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  uint32_t bits = std::bit_cast<uint32_t>(scaled);
  bits |= magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  bits |= static_cast<uint32_t>(code & 0x8000u) << 16;
  return std::bit_cast<float>(bits);
}

inline float bf16_to_float(uint16_t code) {
  return std::bit_cast<float>(static_cast<uint32_t>(code) << 16);
}

// Nearest even; NaN becomes 0x7fff, as the GPU has it.
inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>(value != value ? 0x7fffu : rounded);
}

inline uint16_t float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = (bits >> 16) & 0x8000u;
  // Normal results: round away the low 13 bits; a carry runs into the exponent as it should, up to
  // infinity.
  const uint32_t normal = (magnitude - 0x38000000u + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal results: adding 1/2 puts the unit of the last place of f16's subnormals, 2^-24, at
  // the last bit of the sum.
  const uint32_t tiny =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t code = magnitude < 0x38800000u ? tiny : normal;
  code = magnitude >= 0x47800000u ? 0x7c00u : code;
  return static_cast<uint16_t>(magnitude > 0x7f800000u ? 0x7fffu : (code | sign));
}

inline float e2m1_to_float(uint32_t code) { return decode_to_float(Format::kE2m1, code); }
inline float e4m3_to_float(uint32_t code) { return decode_to_float(Format::kE4m3, code); }
inline float e5m2_to_float(uint32_t code) {
  return f16_to_float(static_cast<uint16_t>((code & 0xffu) << 8));
}

}  // namespace ptxsim
