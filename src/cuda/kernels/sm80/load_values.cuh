// Loads from addresses that suit no more than one element, or of what may not exist.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::sm80 {

// Eight bytes from anywhere.
DUALGEMM_DEVICE uint2 load_8_bytes(const uint8_t* from) {
  if (reinterpret_cast<uintptr_t>(from) % 8 == 0) return *reinterpret_cast<const uint2*>(from);
  uint32_t words[2] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) words[i / 4] |= static_cast<uint32_t>(from[i]) << (8 * (i % 4));
  return make_uint2(words[0], words[1]);
}

// Eight halves, or four or eight codes, from `offset` on where they exist, else zeros; for places
// where that is rare. Loops, which stay behind their branch: of plain loads the compiler makes
// instructions with predicates, which take their slots in any case, 40 of 455 of a chunk. They have
// the same length in all lanes, so that a warp stays together.
DUALGEMM_DEVICE void load_rarely(uint4& eight, const uint8_t* row, uint32_t offset, bool exists) {
  const auto* const from = reinterpret_cast<const uint16_t*>(row + (exists ? offset : 0));
  const uint32_t mask = exists ? ~0u : 0;
  eight = make_uint4(0, 0, 0, 0);
#pragma unroll 1
  for (int i = 0; i < 8; i += 2) {
    const uint32_t two = from[i] | static_cast<uint32_t>(from[i + 1]) << 16;
    eight = make_uint4(eight.y, eight.z, eight.w, two & mask);
  }
}
DUALGEMM_DEVICE void load_rarely(uint32_t& word, const uint8_t* row, uint32_t offset, bool exists) {
  const uint8_t* const from = row + (exists ? offset : 0);
  word = 0;
#pragma unroll 1
  for (int i = 0; i < 4; ++i) word = word >> 8 | static_cast<uint32_t>(from[i]) << 24;
  if (!exists) word = 0;
}
DUALGEMM_DEVICE void load_rarely(uint2& words, const uint8_t* row, uint32_t offset, bool exists) {
  load_rarely(words.x, row, offset, exists);
  load_rarely(words.y, row, offset + 4, exists);
}

}  // namespace dualgemm::cuda::sm80
