// Prepared weights of the kernels that decode to 16 bits and multiply by mma.sync or wgmma (sm_80
// to sm_90a, sm_12x): Gate and Up together in the order in which a warp uses them.
//
// Each batch has (chunks, units) units; chunks of 64 elements along k, four for each k-tile of 256,
// units of 8 columns of D, as many as tiles of 128 columns round n up to (wider tiles take care
// where they end). A CTA's part of a chunk is contiguous: one bulk copy brings it. What lies at or
// after n or k is zero.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"

namespace dualgemm::cuda {

inline constexpr int kUnitCols = 8;       // of D: eight rows of Gate and the same of Up
inline constexpr int kUnitK = 64;         // elements along k
inline constexpr int kUnitMultiple = 16;  // units of a chunk are a multiple of it
inline constexpr int kUnitLanes = 32;
inline constexpr int kPackedK = 256;  // k is rounded up to a multiple of it

// Lane 4r + q has the codes of row r at k = 16q .. 16q+15 of the chunk, one 16-block, of Gate and
// of Up, and their scales. What a warp reads at a time lies lane beside lane: no bank conflicts.
struct PackedUnit {
  uint32_t codes[kUnitLanes][2][2];  // [lane][Gate, Up][word of eight neighbours]
  uint8_t scales[kUnitLanes][2];     // [lane][Gate, Up]
};
inline constexpr int kUnitBytes = sizeof(PackedUnit);
static_assert(kUnitBytes == 576 && kUnitBytes % 16 == 0, "bulk copies move multiples of 16 bytes");

// Where the bits s, e, e, m of code i and code i + 4 of a word go, in its low and in its high half.
// fp16 wants them at 15, 11, 10, 9 and bf16 at 15, 8, 7, 6: pair 0 is there, pair 1 three bits
// below; no further pair can be a shifted copy without overlapping these two, so that the others'
// signs and rests are shifted apart. Decoding takes six logic operations for a word's four pairs,
// a word of a checkpoint takes nine.
struct PlaceOfPair {
  int sign, rest;  // lowest bit; the rest is e, e, m
};
template <bool kBf16>
DUALGEMM_HOST_DEVICE constexpr PlaceOfPair place_of_pair(int pair) {
  constexpr PlaceOfPair kF16[4] = {{15, 9}, {12, 6}, {14, 3}, {13, 0}};
  constexpr PlaceOfPair kBF16[4] = {{15, 6}, {12, 3}, {14, 0}, {13, 9}};
  return kBf16 ? kBF16[pair] : kF16[pair];
}

// Eight codes, nibble i code i, with their bits in those places.
template <bool kBf16>
DUALGEMM_HOST_DEVICE constexpr uint32_t pack_word(uint32_t word) {
  uint32_t packed = 0;
  for (int code = 0; code < 8; ++code) {
    const uint32_t bits = word >> (4 * code) & 0xF;
    const PlaceOfPair place = place_of_pair<kBf16>(code % 4);
    packed |= (bits >> 3 << place.sign | (bits & 7) << place.rest) << (code / 4 * 16);
  }
  return packed;
}

// A problem's prepared weights, as the kernels address them. The two units after a batch's last one
// are there and zero: a tile of three units may reach beyond the last column.
struct PackedWeights {
  const uint8_t* units;  // at a multiple of 16 bytes
  int64_t chunk_bytes;   // from a chunk to the next
  int64_t batch_bytes;

  DUALGEMM_HOST_DEVICE const uint8_t* unit(uint32_t batch, uint32_t chunk, uint32_t first) const {
    return units + batch * batch_bytes + chunk * chunk_bytes + first * int64_t{kUnitBytes};
  }
};
inline constexpr int kUnitsBeyond = 2;

}  // namespace dualgemm::cuda
