// Codes of NVFP4 to the places that decoding wants them in, of words as they lie and of prepared
// ones. Shifts: how a kernel shifts; shift<kLeft>(shifts, word) beside it is word * 2^kLeft,
// rounded down if kLeft < 0.
#pragma once

#include <cstdint>

#include "cuda/kernels/packed/packed_unit.hpp"

namespace dualgemm::cuda {

// The codes of nibbles kPair and kPair+4 of a word, as bf16 times 2^-126: bit 3 of the nibble to
// bit 15, bit 0 to the top of the mantissa.
template <int kPair, class Shifts>
DUALGEMM_DEVICE uint32_t place_pair_bf16(const Shifts& shifts, uint32_t word) {
  return (shift<12 - 4 * kPair>(shifts, word) & 0x80008000u) |
         (shift<6 - 4 * kPair>(shifts, word) & 0x01C001C0u);
}

// Eight codes of a row, as four pairs (nibbles i and i+4) that wait for their scale. fp16 numbers
// of that kind have a low byte of 0: the high bytes of four codes are put together in one word and
// then spread, which takes fewer operations than each pair by itself.
template <bool kBf16, class Shifts>
DUALGEMM_DEVICE void place_word(const Shifts& shifts, uint32_t word, uint32_t (&pairs)[4]) {
  if constexpr (kBf16) {
    pairs[0] = place_pair_bf16<0>(shifts, word), pairs[1] = place_pair_bf16<1>(shifts, word);
    pairs[2] = place_pair_bf16<2>(shifts, word), pairs[3] = place_pair_bf16<3>(shifts, word);
  } else {
    constexpr uint32_t kSigns = 0x80808080u, kRests = 0x0E0E0E0Eu;
    const uint32_t even = (shift<4>(shifts, word) & kSigns) | (shift<1>(shifts, word) & kRests);
    const uint32_t odd = (word & kSigns) | (shift<-3>(shifts, word) & kRests);
    pairs[0] = __byte_perm(even, 0, 0x2404), pairs[1] = __byte_perm(odd, 0, 0x2404);
    pairs[2] = __byte_perm(even, 0, 0x3414), pairs[3] = __byte_perm(odd, 0, 0x3414);
  }
}

// The same of a word of prepared weights.
template <MovedWord kBy, class Shifts>
DUALGEMM_DEVICE uint32_t move(const Shifts& shifts, uint32_t word) {
  if constexpr (kBy.rotates) return __funnelshift_l(word, word, kBy.left);
  return shift<kBy.left>(shifts, word);
}

template <bool kBf16, int kPair, class Shifts>
DUALGEMM_DEVICE uint32_t place_packed_pair(const Shifts& shifts, uint32_t word) {
  constexpr PairOfWord kFrom = pair_of_word<kBf16>(kPair);
  uint32_t moved = move<kFrom.first>(shifts, word);
  if constexpr (kFrom.has_second) moved ^= move<kFrom.second>(shifts, word);
  return moved & kPairBits<kBf16>;
}

template <bool kBf16, class Shifts>
DUALGEMM_DEVICE void place_packed_word(const Shifts& shifts, uint32_t word, uint32_t (&pairs)[4]) {
  pairs[0] = place_packed_pair<kBf16, 0>(shifts, word);
  pairs[1] = place_packed_pair<kBf16, 1>(shifts, word);
  pairs[2] = place_packed_pair<kBf16, 2>(shifts, word);
  pairs[3] = place_packed_pair<kBf16, 3>(shifts, word);
}

}  // namespace dualgemm::cuda
