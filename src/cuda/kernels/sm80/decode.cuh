// NVFP4 codes and scales to pairs of fp16 or bf16, exactly, with what sm_80 has.
//
// E2M1 is s eem; placed at the sign, the two lowest exponent bits and the highest mantissa bit of a
// half it is the number times 2^-14 (fp16) or 2^-126 (bf16), the subnormal 1/2 included. One
// multiplication by the scale, which carries the rest of the power of two, finishes the decoding.
//   fp16: (c * 2^-14) * (s * 2^7)    = c*s * 2^-7: a multiple of 2^-17, at most 21
//   bf16: (c * 2^-126) * (s * 2^118) = c*s * 2^-8
#pragma once

#include <cstdint>

#include "cuda/kernels/packed/place_codes.cuh"
#include "cuda/ptx/math.cuh"
#include "cuda/ptx/mma_sync.cuh"

namespace dualgemm::cuda::sm80 {

// word * 2^kLeft, rounded down if kLeft < 0: what place_codes.cuh asks for.
struct Shifts {};
template <int kLeft>
DUALGEMM_DEVICE uint32_t shift(Shifts, uint32_t word) {
  if constexpr (kLeft >= 0) {
    return word << kLeft;
  } else {
    return word >> -kLeft;
  }
}

// Two scales, in bits 0 to 7 and 16 to 23, ready for the multiplication, one in each half. Their
// signs count for nothing, NaN is kept. E4M3 without its sign, 7 bits further left, is fp16 times
// 2^-8, 4 bits further bf16 times 2^-120, subnormals included; NaN, 0x7F, is the one whose
// successor has bit 7.
template <bool kBf16>
DUALGEMM_DEVICE uint32_t expand_scales(uint32_t scales) {
  const uint32_t two = scales & 0x007F007Fu;
  const uint32_t nan = (two + 0x00010001u) & 0x00800080u;
  if constexpr (kBf16) {
    constexpr uint32_t k2To119 = 0x7B007B00u;  // twice, as 2^238 is no bf16
    // The exponent of NaN; the mantissa of 480 is not 0.
    return ptx::product_bf16x2(ptx::product_bf16x2(two << 4, k2To119), k2To119) | nan * 0xFFu;
  } else {
    return ptx::mul_rn_f16x2(two << 7, 0x78007800u) | nan * 0xFCu;  // 2^15; 0x7E00
  }
}

template <bool kBf16>
DUALGEMM_DEVICE uint32_t multiply_pair(uint32_t codes, uint32_t scale) {
  return kBf16 ? ptx::product_bf16x2(codes, scale) : ptx::mul_rn_f16x2(codes, scale);
}

// Eight codes of a row, as four pairs: nibbles i and i+4.
template <bool kBf16, bool kPrepared>
DUALGEMM_DEVICE void decode_word(uint32_t word, uint32_t scale, uint32_t (&pairs)[4]) {
  if constexpr (kPrepared) {
    place_packed_word<kBf16>(Shifts{}, word, pairs);
  } else {
    place_word<kBf16>(Shifts{}, word, pairs);
  }
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) pairs[pair] = multiply_pair<kBf16>(pairs[pair], scale);
}

// Eight codes of a row of A, whose scale stands in both halves of a word.
DUALGEMM_DEVICE uint4 decode_word_of_a(uint32_t word, uint32_t scale) {
  uint32_t pairs[4];
  decode_word<false, false>(word, scale, pairs);
  return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// Eight halves of a row of A in the order that decoded codes have.
DUALGEMM_DEVICE uint4 in_order_of_pairs(const uint4& halves) {
  return make_uint4(
      __byte_perm(halves.x, halves.z, 0x5410), __byte_perm(halves.x, halves.z, 0x7632),
      __byte_perm(halves.y, halves.w, 0x5410), __byte_perm(halves.y, halves.w, 0x7632));
}

}  // namespace dualgemm::cuda::sm80
