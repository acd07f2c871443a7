// Scales of prepared weights in shared memory: from rows to what the tensor core copies. Part of
// dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/kernels/blackwell/scale_words.cuh"

namespace dualgemm::cuda::sm100a_pair {

// The scales of one matrix in the rows lane, lane + 32, ... of a tile: each row has a word for each
// MMA step.
template <Config kCfg>
struct LaneScales {
  static constexpr int kGroups = (kCfg.tile_n + 31) / 32;  // of 32 rows: TMEM columns
  uint32_t words[kGroups][kMmaSteps];
};

template <Config kCfg>
DUALGEMM_DEVICE void load_scales(const Stage<kCfg>& stage, uint32_t lane, int matrix,
                                 LaneScales<kCfg>& scales) {
#pragma unroll
  for (int group = 0; group < LaneScales<kCfg>::kGroups; ++group) {
    const uint32_t row = 32 * group + lane;
    uint4 words = make_uint4(0, 0, 0, 0);  // behind a tile's last row: not read by the MMA
    if (row < kCfg.tile_n) {
      const UnitScales& unit = stage.sf_weights.as_loaded[row / kUnitCols];
      words = *reinterpret_cast<const uint4*>(unit.rows[matrix][row % kUnitCols]);
    }
    scales.words[group][0] = words.x, scales.words[group][1] = words.y;
    scales.words[group][2] = words.z, scales.words[group][3] = words.w;
  }
}

// The word of a group in a step, 0 where the tile has no such group.
template <Config kCfg>
DUALGEMM_DEVICE uint32_t word_of(const LaneScales<kCfg>& scales, int group, int step) {
  return group < LaneScales<kCfg>::kGroups ? scales.words[group][step] : 0;
}

// By a whole warp: the tile's scales as scale tiles, one for Gate and Up or one each, in the place
// in which they have arrived. Row r of a scale tile has the rows r, r + 32, ...
template <Config kCfg>
DUALGEMM_DEVICE void arrange_stage(Stage<kCfg>& stage, uint32_t lane) {
  LaneScales<kCfg> gate, up;
  load_scales<kCfg>(stage, lane, 0, gate);
  load_scales<kCfg>(stage, lane, 1, up);
  __syncwarp();
#pragma unroll
  for (int step = 0; step < kMmaSteps; ++step) {
    auto& tiles = stage.sf_weights.tiles[step];
    if constexpr (Budget<kCfg>::kScalesShareTile) {
      tiles[0][lane] = make_uint4(word_of(gate, 0, step), word_of(gate, 1, step),
                                  word_of(up, 0, step), word_of(up, 1, step));
    } else {
      tiles[0][lane] = make_uint4(word_of(gate, 0, step), word_of(gate, 1, step),
                                  word_of(gate, 2, step), word_of(gate, 3, step));
      tiles[1][lane] = make_uint4(word_of(up, 0, step), word_of(up, 1, step), word_of(up, 2, step),
                                  word_of(up, 3, step));
    }
  }
}

// As words of scale tiles: those of rows lane, lane + 32, ... of 128.
using ScaleTiles = uint32_t[kMmaSteps][32][kScaleTileCols];

// By a warp, in place: 128 rows of scales become scale tiles. A lane writes where it has read.
DUALGEMM_DEVICE void arrange_rows(uint8_t* scales, uint32_t lane) {
  blackwell::ScaleWords words;
#pragma unroll
  for (int word = 0; word < kScaleTileCols; ++word)
    blackwell::take_row(scales, 32 * word + lane, word, words);
  blackwell::write_scales(words, lane, *reinterpret_cast<ScaleTiles*>(scales));
}

// By a whole warp: one stage of the round of that parity.
template <Config kCfg>
DUALGEMM_DEVICE void wait_and_arrange(const Params& params, SharedStorage<kCfg>& smem,
                                      uint32_t index, uint32_t parity) {
  const uint32_t lane = threadIdx.x % 32;
  ptx::mbarrier_wait_parity(&smem.sf_full[index], parity);
  arrange_stage<kCfg>(smem.stages[index], lane);
  if (params.linear_a) arrange_rows(smem.stages[index].sf_a, lane);
  ptx::fence_proxy_async_shared();
  __syncwarp();
  if (lane == 0) ptx::mbarrier_arrive_cluster(ptx::mapa(&smem.ab_full[index], 0));
  __syncwarp();
}

// Runs on: the warps of the epilogue; `index` counts them, each for the stage of that number: a
// warp that saw only the second of two rounds of a stage could take the barrier's phase before the
// first for it.   Waits: sf_full[stage].   Arrives: ab_full[stage] of the leader.
template <Config kCfg>
DUALGEMM_DEVICE void arrange_scales(const Params& params, SharedStorage<kCfg>& smem,
                                    uint32_t index) {
  if (index >= smem.kStages) return;
  uint32_t round_parity = 0;
#pragma unroll 1
  for (uint32_t k_tile = index; k_tile < params.num_k_tiles; k_tile += smem.kStages) {
    wait_and_arrange(params, smem, index, round_parity);
    round_parity ^= 1;
  }
}

// The same of all tiles of persistent pairs.   Runs on: kArrangeWarps, each for some stages.
template <Config kCfg>
DUALGEMM_DEVICE void arrange_all_scales(const Params& params, SharedStorage<kCfg>& smem,
                                        uint32_t index) {
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (Turns<kCfg> turns(params);; turns.advance()) {
#pragma unroll 1
    for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
      if (ring.stage % Budget<kCfg>::kArrangeWarps == index)
        wait_and_arrange(params, smem, ring.stage, ring.round_parity);
    }
    if (turns.is_last()) return;
  }
}

}  // namespace dualgemm::cuda::sm100a_pair
