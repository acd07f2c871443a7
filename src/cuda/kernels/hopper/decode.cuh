// NVFP4 codes and scales to pairs of fp16 or bf16, exactly.
//
// E2M1 is s eem; placed at the sign, the two lowest exponent bits and the highest mantissa bit of a
// half it is the number times 2^-14 (fp16) or 2^-126 (bf16), the subnormal 1/2 included. One
// multiplication by the scale, which carries the rest of the power of two, finishes the decoding.
//   fp16: (c * 2^-14) * (s * 2^7)    = c*s * 2^-7:  2^-17 .. 21, a multiple of 2^-17
//   bf16: (c * 2^-126) * (s * 2^112) = c*s * 2^-14
#pragma once

#include <cstdint>

#include "cuda/kernels/hopper/shifts.hpp"
#include "cuda/kernels/packed/place_codes.cuh"
#include "cuda/ptx/half2.cuh"
#include "cuda/ptx/math.cuh"

namespace dualgemm::cuda::hopper {

// What a decoded weight must be multiplied with: exact in the FP32 sum.
template <bool kBf16>
inline constexpr float kWeightUnit = kBf16 ? 0x1p14f : 0x1p7f;

// word * 2^kLeft, rounded down if kLeft < 0.
template <int kLeft>
DUALGEMM_DEVICE uint32_t shift(const Shifts& shifts, uint32_t word) {
  static_assert(kLeft <= 4 || (kLeft >= 6 && kLeft <= 8) || kLeft == 10 || kLeft == 12);
  if constexpr (kLeft <= 0) return word >> -kLeft;
  if constexpr (kLeft == 1) return word * shifts.by1;
  if constexpr (kLeft == 2) return word * shifts.by2;
  if constexpr (kLeft == 3) return word * shifts.by3;
  if constexpr (kLeft == 4) return word * shifts.by4;
  if constexpr (kLeft == 6) return word * shifts.by6;
  if constexpr (kLeft == 7) return word * shifts.by7;
  if constexpr (kLeft == 8) return word * shifts.by8;
  if constexpr (kLeft == 10) return word * shifts.by10;
  if constexpr (kLeft == 12) return word * shifts.by12;
}

template <bool kBf16>
DUALGEMM_DEVICE uint32_t multiply(uint32_t a, uint32_t b) {
  return kBf16 ? ptx::mul_bf16x2(a, b) : ptx::mul_f16x2(a, b);
}

// Two scales whose sign bits are clear, ready for the multiplication: both halves alike.
template <bool kBf16>
DUALGEMM_DEVICE void expand_pair(uint32_t bytes, uint32_t& first, uint32_t& second) {
  const uint32_t two = ptx::cvt_f16x2_e4m3x2(static_cast<uint16_t>(bytes));
  if constexpr (kBf16) {
    const float low = ptx::cvt_f32_f16(static_cast<uint16_t>(two)) * 0x1p112f;
    const float high = ptx::cvt_f32_f16(static_cast<uint16_t>(two >> 16)) * 0x1p112f;
    first = ptx::cvt_bf16x2(low, low);
    second = ptx::cvt_bf16x2(high, high);
  } else {
    const uint32_t scaled = ptx::mul_f16x2(two, 0x58005800u);  // 2^7
    first = __byte_perm(scaled, 0, 0x1010);
    second = __byte_perm(scaled, 0, 0x3232);
  }
}

// Four scales of a word: neighbours along k.
template <bool kBf16>
DUALGEMM_DEVICE void expand_scales(uint32_t scales, uint32_t (&pairs)[4]) {
  scales &= 0x7F7F7F7Fu;  // the sign counts for nothing
  expand_pair<kBf16>(scales, pairs[0], pairs[1]);
  expand_pair<kBf16>(scales >> 16, pairs[2], pairs[3]);
}

// Eight codes of a row of Gate and eight of Up: the registers of two MMAs, rows r and r+8.
template <bool kBf16, bool kPrepared>
DUALGEMM_DEVICE void decode_words(const Shifts& shifts, uint32_t gate, uint32_t up,
                                  uint32_t gate_scale, uint32_t up_scale, uint32_t (&first)[4],
                                  uint32_t (&second)[4]) {
  uint32_t gates[4], ups[4];
  if constexpr (kPrepared) {
    place_packed_word<kBf16>(shifts, gate, gates);
    place_packed_word<kBf16>(shifts, up, ups);
  } else {
    place_word<kBf16>(shifts, gate, gates);
    place_word<kBf16>(shifts, up, ups);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    first[2 * half] = multiply<kBf16>(gates[half], gate_scale);
    first[2 * half + 1] = multiply<kBf16>(ups[half], up_scale);
    second[2 * half] = multiply<kBf16>(gates[2 + half], gate_scale);
    second[2 * half + 1] = multiply<kBf16>(ups[2 + half], up_scale);
  }
}

}  // namespace dualgemm::cuda::hopper
