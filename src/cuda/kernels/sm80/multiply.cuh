// The loop over k of tiles with few rows: sums of a warp's rows of weights, which it decodes in
// registers, with the rows of the tile.
//
// mma adds over k, whose order inside a chunk is free as long as it is the same for both operands:
// lane 4r + q has the 16-block q of its rows, and each word of eight codes gives two MMAs, nibbles
// 0,4 and 1,5, then 2,6 and 3,7. warps_k warps divide the chunks of a tile into contiguous parts.
// Each warp has a ring of stages of its own.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/load_a.cuh"
#include "cuda/kernels/sm80/sums.cuh"

namespace dualgemm::cuda::sm80 {

// What a lane multiplies of a row of A at a time: eight neighbours along k.
template <Config kCfg>
DUALGEMM_DEVICE uint4 load_eight(const Place& place, const uint8_t* rows, int word, int group) {
  const uint32_t row = group * kGroupRows + place.row;
  const uint4 eight =
      *reinterpret_cast<const uint4*>(rows + piece_place(row, 2 * place.quarter + word));
  if constexpr (kCfg.a_type == AType::kE2M1) return eight;  // in the order of pairs
  return make_uint4(__byte_perm(eight.x, eight.z, 0x5410), __byte_perm(eight.x, eight.z, 0x7632),
                    __byte_perm(eight.y, eight.w, 0x5410), __byte_perm(eight.y, eight.w, 0x7632));
}

// Eight neighbours along k of a lane's two rows of a unit: mma's a of two steps.
struct Decoded {
  uint32_t low[4], high[4];
};

template <Config kCfg>
DUALGEMM_DEVICE Decoded decode(const uint8_t* weights, int unit, int word) {
  constexpr bool kBf16 = kCfg.a_type == AType::kBF16;
  const uint32_t lane = threadIdx.x % 32;
  const uint8_t* const codes = weights + unit * kCodeBytes;
  const uint8_t* const scales = weights + loop_units_of(kCfg) * kCodeBytes + unit * kScaleBytes;
  uint32_t low, high, low_scale, high_scale;
  if constexpr (kCfg.prepared) {
    const uint4 all = reinterpret_cast<const uint4*>(codes)[lane];
    low = word == 0 ? all.x : all.y, high = word == 0 ? all.z : all.w;
    const uint32_t both = reinterpret_cast<const uint16_t*>(scales)[lane];
    low_scale = both & 0xFF, high_scale = both >> 8;
  } else {
    const uint2 lows = reinterpret_cast<const uint2*>(codes)[lane];
    const uint2 highs = reinterpret_cast<const uint2*>(codes)[32 + lane];
    low = word == 0 ? lows.x : lows.y, high = word == 0 ? highs.x : highs.y;
    low_scale = scales[lane], high_scale = scales[32 + lane];
  }
  expand_scales<kBf16>(low_scale, high_scale, low_scale, high_scale);
  Decoded decoded;
  decode_word<kBf16, kCfg.prepared>(low, low_scale, decoded.low);
  decode_word<kBf16, kCfg.prepared>(high, high_scale, decoded.high);
  return decoded;
}

// The next weights are decoded before the MMAs of those at hand are issued: with 64 rows 1520 us,
// 1791 without (4096 rows, (4096, 7168), bf16, H100). Rows are loaded where the MMAs have read
// their registers.
template <Config kCfg>
DUALGEMM_DEVICE void multiply_stage(const Place& place, const uint8_t* rows, const uint8_t* weights,
                                    LoopSums<kCfg>& sums) {
  constexpr bool kBf16 = kCfg.a_type == AType::kBF16;
  constexpr int kUnits = loop_units_of(kCfg), kTurns = 2 * kUnits;
  uint4 eights[kCfg.groups];
#pragma unroll
  for (int group = 0; group < kCfg.groups; ++group)
    eights[group] = load_eight<kCfg>(place, rows, 0, group);
  Decoded next = decode<kCfg>(weights, 0, 0);
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const Decoded now = next;
    if (turn + 1 < kTurns) next = decode<kCfg>(weights, (turn + 1) % kUnits, (turn + 1) / kUnits);
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      const uint32_t a[4] = {now.low[2 * step], now.high[2 * step], now.low[2 * step + 1],
                             now.high[2 * step + 1]};
#pragma unroll
      for (int group = 0; group < kCfg.groups; ++group) {
        const uint4& eight = eights[group];
        const uint32_t b[2] = {step == 0 ? eight.x : eight.z, step == 0 ? eight.y : eight.w};
        ptx::mma_m16n8k16<kBf16>(sums[turn % kUnits][group], a, b);
        if (turn == kUnits - 1 && step == 1)
          eights[group] = load_eight<kCfg>(place, rows, 1, group);
      }
    }
  }
}

// A warp's stages: rows of A, then weights.
template <Config kCfg>
struct Ring {
  static_assert(!shares_weights(kCfg) && kCfg.warps_n == 1);
  uint8_t* first;

  DUALGEMM_DEVICE uint8_t* rows(uint32_t stage) const {
    return first + stage * stage_bytes_of(kCfg);
  }
  DUALGEMM_DEVICE uint8_t* weights(uint32_t stage) const { return rows(stage) + a_bytes_of(kCfg); }
};

// Chunks begin .. end-1. matrix: of passes that multiply one of them.
template <Config kCfg>
DUALGEMM_DEVICE void multiply(const Params& params, const Place& place, const OperandView& matrix,
                              const TileRows<kCfg>& table, uint8_t* stages, uint32_t begin,
                              uint32_t end, LoopSums<kCfg>& sums) {
  constexpr bool kDecodesA = kCfg.a_type == AType::kE2M1;
  const Ring<kCfg> ring{stages + place.warp_k * params.stages * stage_bytes_of(kCfg)};
  const auto copy = [&](uint32_t chunk, uint32_t stage) {
    if (chunk < end) {
      copy_weights<kCfg>(params, place, matrix, chunk, ring.weights(stage));
      if constexpr (!kDecodesA) {
        OwnPieces<kCfg> own;
        own.find(table);
        copy_halves<kCfg>(params, own, table, chunk, ring.rows(stage));
      }
    }
    ptx::cp_async_commit_group();
  };
  [[maybe_unused]] RawBlocks<kCfg> blocks;
  if constexpr (kDecodesA) {
    load_blocks<kCfg>(params, table, begin, blocks);
    store_blocks<kCfg>(blocks, ring.rows(0));
    load_blocks<kCfg>(params, table, begin + 1, blocks);
  }
  // `filled` goes stages - 1 chunks ahead of the one that is multiplied. One copy of the
  // instructions that fill a stage, for those in front of the loop too.
  const uint32_t ahead = params.stages - 1;
  uint32_t stage = 0, slot = 0;
#pragma unroll 1
  for (uint32_t filled = begin; filled < end + ahead; ++filled) {
    const bool multiplies = filled >= begin + ahead;
    if (multiplies) {
      wait_for_stage(params.stages);
      __syncwarp();  // a stage is one warp's
    }
    copy(filled, slot);
    slot = slot + 1 == params.stages ? 0 : slot + 1;
    if (!multiplies) continue;
    __syncwarp();  // copies have branches, mma needs the whole warp
    multiply_stage<kCfg>(place, ring.rows(stage), ring.weights(stage), sums);
    stage = stage + 1 == params.stages ? 0 : stage + 1;
    if constexpr (kDecodesA) {
      store_blocks<kCfg>(blocks, ring.rows(stage));
      load_blocks<kCfg>(params, table, filled - ahead + 2, blocks);
    }
  }
}

}  // namespace dualgemm::cuda::sm80
