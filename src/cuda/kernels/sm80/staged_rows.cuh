// Rows of A of wide tiles: each chunk goes through shared memory once, from where all warps read
// it. A row has 128 bytes, 16 bits a number, in the order of pairs that decoded codes have, in
// pieces of 16 bytes. Piece p of row r stands at p ^ (r & 7): what 8 lanes read at a time then lies
// in different banks.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/kernels/sm80/decode.cuh"
#include "cuda/kernels/sm80/load_values.cuh"
#include "cuda/kernels/sm80/place.cuh"

namespace dualgemm::cuda::sm80 {

DUALGEMM_DEVICE uint32_t piece_place(uint32_t row, uint32_t piece) {
  return row * kRowBytes + (piece ^ (row & 7)) * 16;
}

// What a thread brings of each chunk, from memory to its stage: pieces of 8 halves or blocks of 16
// codes, of rows kStep apart. Where the rows begin stands in shared memory, as 128 of them leave no
// registers for it.
// kPlain: Params::a_plain.
template <Config kCfg, AType kType, bool kPlain>
class RowStager {
  static constexpr bool kDecodes = kType == AType::kE2M1;
  static constexpr uint32_t kOfRow = kDecodes ? kChunkK16 : kPieces;  // threads, of one warp
  static constexpr uint32_t kStep = threads_of(kCfg) / kOfRow;
  static constexpr int kCount = (tile_m_of(kCfg) + kStep - 1) / kStep;
  // Threads beyond the tile's rows have one in the table, too.
  static constexpr uint32_t kRows = kStep < tile_m_of(kCfg) ? tile_m_of(kCfg) : kStep;
  static_assert(kStep % 8 == 0 && kRows <= kMaxTileM);
  static_assert(tile_m_of(kCfg) % (32 / kOfRow) == 0, "of a warp's rows a tile has all or none");

 public:
  // table: the CTA's. Nothing is loaded yet.
  DUALGEMM_DEVICE RowStager(const Params& params, const Place& place, RowTable& table)
      : table_(table) {
    const uint32_t first = threadIdx.x / kOfRow;
    __syncwarp();  // its rows of a tile before have been read
#pragma unroll 1
    for (uint32_t row = first; row < kRows; row += kStep) {
      const RowOfA at = row_of_a<kDecodes>(params, place, place.m_begin + row);
      if (threadIdx.x % kOfRow != 0) continue;
      table_.rows[row] = at.row;
      if constexpr (kDecodes) table_.scales[row] = at.scales;
    }
    __syncwarp();
  }

  // Asks for this thread's part of a chunk, for store(): what lies at or after k is zero, or the
  // last chunk once more, which is not multiplied.
  DUALGEMM_DEVICE void load(const Params& params, uint32_t chunk) {
    if constexpr (kPlain) chunk = min(chunk, params.k16 / kChunkK16 - 1);
    const uint32_t own = threadIdx.x % kOfRow;
    const uint32_t block = chunk * kChunkK16 + own * kChunkK16 / kOfRow;
    const uint32_t offset = (chunk * kOfRow + own) * sizeof(Raw);
    if (kPlain || (params.a_aligned && (chunk + 1) * kChunkK16 <= params.k16)) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) raw_[i] = *reinterpret_cast<const Raw*>(row(i) + offset);
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) load_rarely(raw_[i], row(i), offset, block < params.k16);
    }
    if constexpr (kDecodes) {
      const uint32_t at = params.a.scales.place(min(block, params.k16 - 1));
#pragma unroll
      for (int i = 0; i < kCount; ++i) raw_scales_[i] = table_.scales[number(i)][at];
    }
  }

  DUALGEMM_DEVICE void store(uint8_t* stage) const {
    const uint32_t first = threadIdx.x / kOfRow, own = threadIdx.x % kOfRow;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (!has(i)) continue;
      uint8_t* const rows = stage + i * kStep * kRowBytes;
      if constexpr (kDecodes) {
        const uint32_t scale = expand_scales<false>(raw_scales_[i] * 0x10001u);
        const uint32_t words[2] = {raw_[i].x, raw_[i].y};
#pragma unroll
        for (int word = 0; word < 2; ++word) {
          *reinterpret_cast<uint4*>(rows + piece_place(first, 2 * own + word)) =
              decode_word_of_a(words[word], scale);
        }
      } else {
        *reinterpret_cast<uint4*>(rows + piece_place(first, own)) = in_order_of_pairs(raw_[i]);
      }
    }
  }

 private:
  using Raw = std::conditional_t<kDecodes, uint2, uint4>;
  // Whether the tile has this thread's row number i; the same in a warp.
  DUALGEMM_DEVICE static bool has(int i) {
    constexpr uint32_t kWhole = tile_m_of(kCfg) / kStep;
    return i < kWhole || threadIdx.x / kOfRow + i * kStep < tile_m_of(kCfg);
  }
  // In the table; one of those that this thread has there, so that nothing branches around loads.
  DUALGEMM_DEVICE static uint32_t number(int i) {
    return threadIdx.x / kOfRow + (has(i) ? i * kStep : 0);
  }
  DUALGEMM_DEVICE const uint8_t* row(int i) const { return table_.rows[number(i)]; }

  RowTable& table_;
  Raw raw_[kCount];
  uint32_t raw_scales_[kDecodes ? kCount : 1];
};

// A stage as a lane reads it.
struct StageRows {
  const uint8_t* stage;
  uint32_t row, quarter;

  // A word of a group: mma's b of two steps.
  DUALGEMM_DEVICE uint4 take(int group, int word) const {
    return *reinterpret_cast<const uint4*>(stage + group * kGroupRows * kRowBytes +
                                           piece_place(row, 2 * quarter + word));
  }
};

}  // namespace dualgemm::cuda::sm80
