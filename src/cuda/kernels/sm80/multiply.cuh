// The loop over k of tiles with few rows: sums of a warp's rows of weights, which it decodes in
// registers, with the rows of the tile.
//
// mma adds over k, whose order inside a chunk is free as long as it is the same for both operands:
// lane 4r + q has the 16-block q of its rows, and each word of eight codes gives two MMAs, nibbles
// 0,4 and 1,5, then 2,6 and 3,7. warps_k warps divide the chunks of a tile into contiguous parts.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/lane_rows.cuh"
#include "cuda/kernels/sm80/load_weights.cuh"
#include "cuda/kernels/sm80/sums.cuh"

namespace dualgemm::cuda::sm80 {

// A chunk. The next weights are decoded before the MMAs of those at hand are issued, and the words
// of rows of the next chunk are asked for as soon as those of this one are in use.
template <Config kCfg, AType kType, bool kPlain>
DUALGEMM_DEVICE void multiply_chunk(const Params& params, const Place& place,
                                    LaneRows<kCfg, kType, kPlain>& rows, uint32_t next_chunk,
                                    const uint8_t* weights, LoopSums<kCfg>& sums) {
  constexpr bool kBf16 = kType == AType::kBF16;
  constexpr int kUnits = loop_units_of(kCfg), kTurns = 2 * kUnits;
  uint4 eights[kCfg.groups];
#pragma unroll
  for (int group = 0; group < kCfg.groups; ++group) eights[group] = rows.take(group, 0);
  rows.load(params, place, next_chunk, 0);
  Decoded next = decode<kCfg, kBf16>(weights, 0, 0, load_scales<kCfg, kBf16>(weights, 0));
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const Decoded now = next;
    if (turn + 1 < kTurns) {
      const int unit = (turn + 1) % kUnits, word = (turn + 1) / kUnits;
      next = decode<kCfg, kBf16>(weights, unit, word, load_scales<kCfg, kBf16>(weights, unit));
    }
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int group = 0; group < kCfg.groups; ++group) {
        multiply_step<kBf16>(now, eights[group], step, sums[turn % kUnits][group]);
        if (turn == kUnits - 1 && step == 1) eights[group] = rows.take(group, 1);
      }
    }
    if (turn == kUnits - 1) rows.load(params, place, next_chunk, 1);
  }
}

// Chunks begin .. end-1, of warp warp_k. matrix: of kSequential. stages: the
// CTA's.
template <Config kCfg, AType kType, bool kPlain>
DUALGEMM_DEVICE void multiply(const Params& params, const Place& place, const OperandView& matrix,
                              uint8_t* stages, uint32_t warp_k, uint32_t begin, uint32_t end,
                              LoopSums<kCfg>& sums) {
  static_assert(!is_wide(kCfg) && stages_of(kCfg) == 2);
  constexpr uint32_t kStage = weights_bytes_of(kCfg);
  // Through a shuffle, so that the compiler keeps it: else it makes the address of shared memory
  // from a special register for each chunk.
  const uint32_t first = __shfl_sync(~0u, ptx::shared_address(stages) + warp_k * 2 * kStage, 0);
  WeightRing<kCfg> ring(params, place, matrix, begin, first);
  LaneRows<kCfg, kType, kPlain> rows(params, place);
  rows.load(params, place, begin, 0);
  rows.load(params, place, begin, 1);
  uint32_t stage = 0;
  // `filled` is one ahead of the chunk that is multiplied: there is one copy of the instructions
  // that fill a stage, for the one in front of the loop too.
#pragma unroll 1
  for (uint32_t filled = begin; filled <= end; ++filled) {
    if (filled > begin) {
      ptx::cp_async_wait_group<0>();
      __syncwarp();  // a stage is one warp's
    }
    if (filled < end) ring.copy(params, place, matrix, filled, stage);
    ptx::cp_async_commit_group();
    stage = kStage - stage;
    if (filled == begin) continue;
    if constexpr (!kCfg.prepared) __syncwarp();  // copies have branches, mma needs the whole warp
    multiply_chunk<kCfg, kType, kPlain>(params, place, rows, filled, ring.stage(stage), sums);
  }
  __syncwarp();  // the stages have been read
}

}  // namespace dualgemm::cuda::sm80
