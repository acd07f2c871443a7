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

// Where decoding wants the bits s, e, e, m of two codes, one in each half of a word: fp16 at 15,
// 11, 10, 9, bf16 at 15, 8, 7, 6.
template <bool kBf16>
inline constexpr uint32_t kPairBits = kBf16 ? 0x81C081C0u : 0x8E008E00u;

// A word shifted, to the right if left < 0, or rotated.
struct MovedWord {
  int left;
  bool rotates = false;
};
DUALGEMM_HOST_DEVICE constexpr uint32_t move_word(MovedWord by, uint32_t word) {
  if (by.rotates) return word << by.left | word >> (32 - by.left);
  return by.left < 0 ? word >> -by.left : word << by.left;
}

// Codes i and i + 4 of a packed word, in its low and in its high half: the bits kPairBits of one
// moved word, or of two, added modulo 2 (^).
//
// LOP3 adds two words and selects bits at once, so a word's four pairs take four of these and as
// many moves as reach all of its bits. One pair is in its place. Three moves are too few, as no
// four translates of {15, 8, 7, 6} or {15, 11, 10, 9} fill 16 places; with four there are
// solutions: eight operations, where a word of a checkpoint takes 11 (fp16) or 15. These have the
// most moves to the left, which kernels may do as products on another pipe; of bf16's, one with
// which no kernel spills registers. All were tried.
struct PairOfWord {
  MovedWord first;
  MovedWord second;  // with those of the first
  bool has_second;
};
template <bool kBf16>
DUALGEMM_HOST_DEVICE constexpr PairOfWord pair_of_word(int pair) {
  constexpr PairOfWord kF16[4] = {
      {{0}, {0}, false}, {{3}, {0}, false}, {{7}, {10}, true}, {{7}, {12, true}, true}};
  constexpr PairOfWord kBF16[4] = {
      {{0}, {0}, false}, {{4}, {0}, false}, {{6}, {-2}, true}, {{6}, {10, true}, true}};
  return kBf16 ? kBF16[pair] : kF16[pair];
}

// The bits kPairBits of pair `pair` of a packed word.
template <bool kBf16>
DUALGEMM_HOST_DEVICE constexpr uint32_t place_pair(int pair, uint32_t packed) {
  const PairOfWord from = pair_of_word<kBf16>(pair);
  const uint32_t second = from.has_second ? move_word(from.second, packed) : 0;
  return (move_word(from.first, packed) ^ second) & kPairBits<kBf16>;
}

// The eight codes of a packed word, nibble i code i.
template <bool kBf16>
DUALGEMM_HOST_DEVICE constexpr uint32_t unpack_word(uint32_t packed) {
  constexpr int kRest = kBf16 ? 6 : 9;  // lowest bit of e, e, m
  uint32_t word = 0;
  for (int code = 0; code < 8; ++code) {
    const uint32_t half = place_pair<kBf16>(code % 4, packed) >> (code / 4 * 16);
    word |= ((half >> 15 & 1) << 3 | (half >> kRest & 7)) << (4 * code);
  }
  return word;
}

// The inverse. unpack_word() is linear in bits: of_bit[i] is what has bit i alone.
struct PackTable {
  uint32_t of_bit[32];
};
template <bool kBf16>
DUALGEMM_HOST_DEVICE constexpr PackTable make_pack_table() {
  uint32_t unpacked[32] = {};
  PackTable packed = {};
  for (int i = 0; i < 32; ++i) {
    packed.of_bit[i] = 1u << i;
    unpacked[i] = unpack_word<kBf16>(packed.of_bit[i]);
  }
  for (int bit = 0; bit < 32; ++bit) {  // Gauss and Jordan
    int pivot = bit;
    while ((unpacked[pivot] >> bit & 1) == 0) ++pivot;  // there is one: it compiles
    for (int i = 0; i < 32; ++i) {
      if (i == pivot || (unpacked[i] >> bit & 1) == 0) continue;
      unpacked[i] ^= unpacked[pivot], packed.of_bit[i] ^= packed.of_bit[pivot];
    }
    const uint32_t word = unpacked[bit], its_packed = packed.of_bit[bit];
    unpacked[bit] = unpacked[pivot], packed.of_bit[bit] = packed.of_bit[pivot];
    unpacked[pivot] = word, packed.of_bit[pivot] = its_packed;
  }
  return packed;
}

// Eight codes, nibble i code i, as a packed word.
template <bool kBf16>
DUALGEMM_HOST_DEVICE constexpr uint32_t pack_word(uint32_t word) {
  constexpr PackTable kTable = make_pack_table<kBf16>();
  uint32_t packed = 0;
  for (int bit = 0; bit < 32; ++bit)
    if (word >> bit & 1) packed ^= kTable.of_bit[bit];
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
