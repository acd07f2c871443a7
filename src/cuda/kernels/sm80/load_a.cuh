// Rows of A of a chunk along k, in a stage that the warps beside each other share: 128 bytes a row,
// 16 bits a number, in pieces of 16 bytes. Piece p of row r stands at p ^ (r & 7): what 8 lanes
// read at a time, 16-blocks 0 .. 3 of two rows or a piece of eight, then lies in different banks.
// An A of fp16 or bf16 is copied as it is; codes are decoded once for all warps, into the order
// that place_word() gives.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/decode.cuh"
#include "cuda/kernels/sm80/load_weights.cuh"

namespace dualgemm::cuda::sm80 {

DUALGEMM_DEVICE uint32_t piece_place(uint32_t row, uint32_t piece) {
  return row * kRowBytes + (piece ^ (row & 7)) * 16;
}

// Threads that fill a stage, and this one among them.
template <Config kCfg>
inline constexpr int kSharers = shares_weights(kCfg) ? 32 * kCfg.producers : 32;
template <Config kCfg>
DUALGEMM_DEVICE uint32_t index_of_sharer() {
  return threadIdx.x % kSharers<kCfg>;
}

// Eight halves, from an address that suits one.
DUALGEMM_DEVICE uint4 load_8_halves(const uint16_t* from) {
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = from[2 * i] | static_cast<uint32_t>(from[2 * i + 1]) << 16;
  return make_uint4(words[0], words[1], words[2], words[3]);
}

// Which pieces of a stage's rows a thread copies: piece `piece` of kCount rows, kStep rows apart.
template <Config kCfg>
struct OwnPieces {
  static_assert(kSharers<kCfg> % kPieces == 0);
  static constexpr int kStep = kSharers<kCfg> / kPieces;
  static constexpr int kCount = tile_m_of(kCfg) / kStep;
  static DUALGEMM_DEVICE uint32_t piece() { return index_of_sharer<kCfg>() % kPieces; }
  static DUALGEMM_DEVICE uint32_t first_row() { return index_of_sharer<kCfg>() / kPieces; }

  const uint8_t* rows[kCount];  // where they begin; null: no such row

  DUALGEMM_DEVICE void find(const TileRows<kCfg>& table) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) rows[i] = table.rows[first_row() + i * kStep];
  }
};

// A piece of row i of a thread. In place where the pieces begin at multiples of 16 bytes.
template <Config kCfg, bool kAligned>
DUALGEMM_DEVICE void copy_piece(const Params& params, const uint8_t* of_row, uint32_t i,
                                uint32_t chunk, uint8_t* to) {
  using Own = OwnPieces<kCfg>;
  const uint32_t piece = Own::piece();
  const bool exists = of_row != nullptr && chunk * kChunkK16 + piece / 2 < params.k16;
  const uint8_t* const from =
      exists ? of_row + static_cast<int64_t>(chunk) * kRowBytes + piece * 16 : params.a.rows;
  uint8_t* const at = to + piece_place(Own::first_row() + i * Own::kStep, piece);
  if constexpr (kAligned) {
    ptx::cp_async_16(at, from, exists ? 16 : 0);
  } else {
    *reinterpret_cast<uint4*>(at) =
        exists ? load_8_halves(reinterpret_cast<const uint16_t*>(from)) : make_uint4(0, 0, 0, 0);
  }
}

// own: found for this tile.
template <Config kCfg>
DUALGEMM_DEVICE void copy_halves(const Params& params, const OwnPieces<kCfg>& own,
                                 const TileRows<kCfg>& table, uint32_t chunk, uint8_t* to) {
  using Own = OwnPieces<kCfg>;
  if (params.a_aligned) {
#pragma unroll
    for (int i = 0; i < Own::kCount; ++i) copy_piece<kCfg, true>(params, own.rows[i], i, chunk, to);
  } else {
#pragma unroll 1
    for (uint32_t i = 0; i < Own::kCount; ++i)
      copy_piece<kCfg, false>(params, table.rows[Own::first_row() + i * Own::kStep], i, chunk, to);
  }
}

// A thread's blocks of a chunk of an A in NVFP4, between memory and their stage.
template <Config kCfg>
struct RawBlocks {
  static constexpr int kCount = tile_m_of(kCfg) * kChunkK16 / kSharers<kCfg>;
  uint2 codes[kCount];
  uint32_t scales[kCount];
};

template <Config kCfg>
DUALGEMM_DEVICE void load_blocks(const Params& params, const TileRows<kCfg>& table, uint32_t chunk,
                                 RawBlocks<kCfg>& blocks) {
#pragma unroll
  for (int i = 0; i < RawBlocks<kCfg>::kCount; ++i) {
    const uint32_t index = i * kSharers<kCfg> + index_of_sharer<kCfg>();
    const uint32_t row = index / kChunkK16, k16 = chunk * kChunkK16 + index % kChunkK16;
    const uint8_t* const of_row = table.rows[row];
    blocks.codes[i] = make_uint2(0, 0);
    blocks.scales[i] = 0;
    if (of_row == nullptr || k16 >= params.k16) continue;
    const uint8_t* const from = of_row + k16 * 8;
    blocks.codes[i] = params.a_aligned ? *reinterpret_cast<const uint2*>(from) : load_8_bytes(from);
    blocks.scales[i] = table.scales[row][params.a.scales.place(k16)];
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void store_blocks(const RawBlocks<kCfg>& blocks, uint8_t* to) {
#pragma unroll
  for (int i = 0; i < RawBlocks<kCfg>::kCount; ++i) {
    const uint32_t index = i * kSharers<kCfg> + index_of_sharer<kCfg>();
    const uint32_t row = index / kChunkK16, block = index % kChunkK16;
    uint32_t scale, unused;
    expand_scales<false>(blocks.scales[i], 0, scale, unused);
    const uint32_t words[2] = {blocks.codes[i].x, blocks.codes[i].y};
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      uint32_t pairs[4];
      place_word<false>(Shifts{}, words[word], pairs);
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) pairs[pair] = multiply_pair<false>(pairs[pair], scale);
      *reinterpret_cast<uint4*>(to + piece_place(row, 2 * block + word)) =
          make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
  }
}

}  // namespace dualgemm::cuda::sm80
