// What one thread holds of a k-tile: for a row, 32 neighbours of k, which are two 16-blocks.
// Thread t of a quad takes neighbours 32t .. 32t+31 of all rows, so that both operands are used as
// they lie in memory: mma adds over k, whose order inside a k-tile is free as long as it is the
// same for both. Word i of the four words of codes gives MMA steps 2i (nibbles 0,4 and 1,5) and
// 2i+1 (nibbles 2,6 and 3,7).
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/decode.cuh"
#include "cuda/kernels/sm80/params.hpp"

namespace dualgemm::cuda::sm80 {

// A row of an operand at this thread's part of the current k-tile.
struct RowCursor {
  const uint8_t* row;     // null: no such row, all zeros
  const uint8_t* scales;  // of the row: scale number 0
  bool swizzled;
};

// Row `row` of a batch of `rows`; if scales are swizzled, they are those of row `swizzled_row`.
DUALGEMM_DEVICE RowCursor row_cursor(const OperandView& operand, uint32_t batch, uint32_t row,
                                     uint32_t rows, uint32_t swizzled_row) {
  if (row >= rows) return {nullptr, nullptr, false};
  const ScaleView& view = operand.scales;
  int64_t offset = static_cast<int64_t>(row) * view.ld;
  if (view.swizzled) {
    offset = swizzled_row / 128 * view.ld + swizzled_row % 32 * 16 + swizzled_row % 128 / 32 * 4;
  }
  return {operand.rows + batch * operand.batch_bytes + row * operand.row_bytes,
          view.bytes + batch * view.batch_bytes + offset, view.swizzled};
}

DUALGEMM_DEVICE uint32_t load_scale(const RowCursor& cursor, uint32_t k16) {
  return cursor.scales[cursor.swizzled ? k16 / 4 * 512 + k16 % 4 : k16];
}

// Eight bytes from anywhere.
DUALGEMM_DEVICE uint2 load_8_bytes(const uint8_t* from) {
  if (reinterpret_cast<uintptr_t>(from) % 8 == 0) return *reinterpret_cast<const uint2*>(from);
  uint32_t words[2] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) words[i / 4] |= static_cast<uint32_t>(from[i]) << (8 * (i % 4));
  return make_uint2(words[0], words[1]);
}

// Codes and scales of one row.
struct Packed {
  uint4 codes;
  uint32_t scales[2];  // bytes
};

// What lies at or after k16_count is zero, scales included: 0 * NaN would be NaN.
DUALGEMM_DEVICE Packed load_packed(const RowCursor& cursor, uint32_t k16, uint32_t k16_count,
                                   bool aligned16) {
  Packed packed{};
  if (cursor.row == nullptr || k16 >= k16_count) return packed;
  const uint8_t* const from = cursor.row + k16 * 8;
  packed.scales[0] = load_scale(cursor, k16);
  const bool both = k16 + 1 < k16_count;
  if (both) packed.scales[1] = load_scale(cursor, k16 + 1);
  if (both && aligned16) {
    packed.codes = *reinterpret_cast<const uint4*>(from);
    return packed;
  }
  const uint2 low = load_8_bytes(from);
  const uint2 high = both ? load_8_bytes(from + 8) : make_uint2(0, 0);
  packed.codes = make_uint4(low.x, low.y, high.x, high.y);
  return packed;
}

// 32 halves of one row as the 8 steps of a k-tile need them: [step][half of k].
using Steps = uint32_t[8][2];

template <bool kBf16>
DUALGEMM_DEVICE void decode(const Packed& packed, Steps& steps) {
  const uint32_t words[4] = {packed.codes.x, packed.codes.y, packed.codes.z, packed.codes.w};
  const uint32_t scales[2] = {expand_scale<kBf16>(packed.scales[0]),
                              expand_scale<kBf16>(packed.scales[1])};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    steps[2 * i][0] = decode_pair<kBf16, 0>(words[i], scales[i / 2]);
    steps[2 * i][1] = decode_pair<kBf16, 1>(words[i], scales[i / 2]);
    steps[2 * i + 1][0] = decode_pair<kBf16, 2>(words[i], scales[i / 2]);
    steps[2 * i + 1][1] = decode_pair<kBf16, 3>(words[i], scales[i / 2]);
  }
}

// Eight halves, from an address that suits one.
DUALGEMM_DEVICE uint4 load_8_halves(const uint16_t* from, bool aligned16) {
  if (aligned16) return *reinterpret_cast<const uint4*>(from);
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = from[2 * i] | static_cast<uint32_t>(from[2 * i + 1]) << 16;
  return make_uint4(words[0], words[1], words[2], words[3]);
}

// A row of an A that is fp16 or bf16 already: pairs 0,4  1,5  2,6  3,7 of each eight neighbours.
DUALGEMM_DEVICE void load_halves(const RowCursor& cursor, uint32_t k16, uint32_t k16_count,
                                 bool aligned16, Steps& steps) {
  const auto* const from = reinterpret_cast<const uint16_t*>(cursor.row) + k16 * 16;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint4 eight = make_uint4(0, 0, 0, 0);
    if (cursor.row != nullptr && k16 + i / 2 < k16_count)
      eight = load_8_halves(from + 8 * i, aligned16);
    steps[2 * i][0] = __byte_perm(eight.x, eight.z, 0x5410);
    steps[2 * i][1] = __byte_perm(eight.x, eight.z, 0x7632);
    steps[2 * i + 1][0] = __byte_perm(eight.y, eight.w, 0x5410);
    steps[2 * i + 1][1] = __byte_perm(eight.y, eight.w, 0x7632);
  }
}

}  // namespace dualgemm::cuda::sm80
