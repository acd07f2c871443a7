// NVFP4 codes and scales to pairs of fp16 or bf16, exactly, with what sm_80 has.
//
// E2M1 is s eem; placed at the sign, the two lowest exponent bits and the highest mantissa bit of a
// half it is the number times 2^-14 (fp16) or 2^-126 (bf16), the subnormal 1/2 included. One
// multiplication by the scale, which carries the rest of the power of two, finishes the decoding.
//   fp16: (c * 2^-14) * (s * 2^7)    = c*s * 2^-7: a multiple of 2^-17, at most 21
//   bf16: (c * 2^-126) * (s * 2^118) = c*s * 2^-8
#pragma once

#include <cstdint>

#include "cuda/ptx/math.cuh"
#include "cuda/ptx/mma_sync.cuh"

namespace dualgemm::cuda::sm80 {

// What a decoded number must be multiplied with.
template <bool kBf16>
inline constexpr float kDecodedUnit = kBf16 ? 0x1p8f : 0x1p7f;

// The codes of nibbles kPair and kPair+4 of a word, as halves times 2^-14 or 2^-126.
template <bool kBf16, int kPair>
DUALGEMM_DEVICE uint32_t place_pair(uint32_t word) {
  constexpr int kToSign = 12 - 4 * kPair;               // bit 3 of the nibble to bit 15
  constexpr int kToRest = (kBf16 ? 6 : 9) - 4 * kPair;  // bit 0 to the top of the mantissa
  constexpr uint32_t kRest = kBf16 ? 0x01C001C0u : 0x0E000E00u;
  uint32_t rest;
  if constexpr (kToRest >= 0) {
    rest = word << kToRest;
  } else {
    rest = word >> -kToRest;
  }
  return ((word << kToSign) & 0x80008000u) | (rest & kRest);
}

// A scale, ready for the multiplication, in both halves. Its sign counts for nothing, NaN is kept.
template <bool kBf16>
DUALGEMM_DEVICE uint32_t expand_scale(uint32_t byte) {
  const uint32_t magnitude = byte & 0x7F;
  // Moved into FP32's fields it is the number times 2^-120, subnormals included.
  float scale = __uint_as_float(magnitude << 20) * 0x1p120f;
  if (magnitude == 0x7F) scale = __uint_as_float(0x7FC00000u);
  if constexpr (kBf16) {
    scale *= 0x1p118f;
    return ptx::cvt_bf16x2(scale, scale);
  } else {
    scale *= 0x1p7f;
    return ptx::cvt_f16x2(scale, scale);
  }
}

template <bool kBf16, int kPair>
DUALGEMM_DEVICE uint32_t decode_pair(uint32_t word, uint32_t scale) {
  const uint32_t codes = place_pair<kBf16, kPair>(word);
  return kBf16 ? ptx::product_bf16x2(codes, scale) : ptx::mul_rn_f16x2(codes, scale);
}

}  // namespace dualgemm::cuda::sm80
