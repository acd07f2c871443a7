// NVFP4 codes and scales to pairs of fp16 or bf16, exactly, with what sm_80 has.
//
// E2M1 is s eem; placed at the sign, the two lowest exponent bits and the highest mantissa bit of a
// half it is the number times 2^-14 (fp16) or 2^-126 (bf16), the subnormal 1/2 included. One
// multiplication by the scale, which carries the rest of the power of two, finishes the decoding.
//   fp16: (c * 2^-14) * (s * 2^7)    = c*s * 2^-7: a multiple of 2^-17, at most 21
//   bf16: (c * 2^-126) * (s * 2^118) = c*s * 2^-8
#pragma once

#include <cstdint>

#include "cuda/kernels/packed/packed_unit.hpp"
#include "cuda/ptx/math.cuh"
#include "cuda/ptx/mma_sync.cuh"

namespace dualgemm::cuda::sm80 {

// What a decoded number must be multiplied with.
template <bool kBf16>
inline constexpr float kDecodedUnit = kBf16 ? 0x1p8f : 0x1p7f;

// word * 2^kLeft, rounded down if kLeft < 0.
template <int kLeft>
DUALGEMM_DEVICE uint32_t shift(uint32_t word) {
  if constexpr (kLeft >= 0) {
    return word << kLeft;
  } else {
    return word >> -kLeft;
  }
}

// The codes of nibbles kPair and kPair+4 of a word, as bf16 times 2^-126.
template <int kPair>
DUALGEMM_DEVICE uint32_t place_pair_bf16(uint32_t word) {
  return (shift<12 - 4 * kPair>(word) & 0x80008000u) | (shift<6 - 4 * kPair>(word) & 0x01C001C0u);
}

// Eight codes of a row, as four pairs (nibbles i and i+4) that wait for their scale. fp16 numbers
// of that kind have a low byte of 0: the high bytes of four codes are put together in one word and
// then spread, which takes fewer operations than each pair by itself.
template <bool kBf16>
DUALGEMM_DEVICE void place_word(uint32_t word, uint32_t (&pairs)[4]) {
  if constexpr (kBf16) {
    pairs[0] = place_pair_bf16<0>(word), pairs[1] = place_pair_bf16<1>(word);
    pairs[2] = place_pair_bf16<2>(word), pairs[3] = place_pair_bf16<3>(word);
  } else {
    constexpr uint32_t kSigns = 0x80808080u, kRests = 0x0E0E0E0Eu;
    const uint32_t even = (word << 4 & kSigns) | (word << 1 & kRests);
    const uint32_t odd = (word & kSigns) | (word >> 3 & kRests);
    pairs[0] = __byte_perm(even, 0, 0x2404), pairs[1] = __byte_perm(odd, 0, 0x2404);
    pairs[2] = __byte_perm(even, 0, 0x3414), pairs[3] = __byte_perm(odd, 0, 0x3414);
  }
}

// The same of a word of prepared weights.
template <bool kBf16, int kPair>
DUALGEMM_DEVICE uint32_t place_packed_pair(uint32_t word) {
  constexpr PlaceOfPair kTo = place_of_pair<kBf16>(0), kFrom = place_of_pair<kBf16>(kPair);
  constexpr uint32_t kSign = 0x00010001u << kTo.sign, kRest = 0x00070007u << kTo.rest;
  constexpr int kSignLeft = kTo.sign - kFrom.sign, kRestLeft = kTo.rest - kFrom.rest;
  if constexpr (kSignLeft == kRestLeft) return shift<kSignLeft>(word) & (kSign | kRest);
  return (shift<kRestLeft>(word) & kRest) | (shift<kSignLeft>(word) & kSign);
}
template <bool kBf16>
DUALGEMM_DEVICE void place_packed_word(uint32_t word, uint32_t (&pairs)[4]) {
  pairs[0] = place_packed_pair<kBf16, 0>(word), pairs[1] = place_packed_pair<kBf16, 1>(word);
  pairs[2] = place_packed_pair<kBf16, 2>(word), pairs[3] = place_packed_pair<kBf16, 3>(word);
}

// Two scales, ready for the multiplication, each in both halves of its word. Their signs count for
// nothing, NaN is kept. E4M3 without its sign, 7 bits further left, is fp16 times 2^-8, 4 bits
// further bf16 times 2^-120, subnormals included; NaN, 0x7F, is the one whose successor has bit 7.
template <bool kBf16>
DUALGEMM_DEVICE void expand_scales(uint32_t first, uint32_t second, uint32_t& first_pair,
                                   uint32_t& second_pair) {
  const uint32_t two = __byte_perm(first, second, 0x0400) & 0x007F007Fu;
  const uint32_t nan = (two + 0x00010001u) & 0x00800080u;
  uint32_t scaled;
  if constexpr (kBf16) {
    constexpr uint32_t k2To119 = 0x7B007B00u;  // twice, as 2^238 is no bf16
    scaled = ptx::product_bf16x2(ptx::product_bf16x2(two << 4, k2To119), k2To119);
    scaled |= nan * 0xFFu;  // the exponent of NaN; the mantissa of 480 is not 0
  } else {
    scaled = ptx::mul_rn_f16x2(two << 7, 0x78007800u) | nan * 0xFCu;  // 2^15; 0x7E00
  }
  first_pair = __byte_perm(scaled, 0, 0x1010);
  second_pair = __byte_perm(scaled, 0, 0x3232);
}

template <bool kBf16>
DUALGEMM_DEVICE uint32_t multiply_pair(uint32_t codes, uint32_t scale) {
  return kBf16 ? ptx::product_bf16x2(codes, scale) : ptx::mul_rn_f16x2(codes, scale);
}

}  // namespace dualgemm::cuda::sm80
