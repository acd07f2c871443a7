// Three of the four roles over the tiles of groups. The fourth is finish_tiles.cuh. Part of
// grouped.cuh, which has the tables.
#pragma once

#include "cuda/kernels/blackwell/finish_tiles.cuh"
#include "cuda/kernels/sm100a_skinny/mainloop.cuh"
#include "cuda/kernels/sm100a_skinny/prepared.cuh"

namespace dualgemm::cuda::sm100a_skinny {

// By one thread: a stage's scales of one operand, from `row` on of its rows or of rows of scale
// tiles.
DUALGEMM_DEVICE void load_scales(void* to, const TensorMap& map, bool linear, uint32_t k_tile,
                                 uint32_t row, int32_t batch, ptx::Barrier* full,
                                 ptx::CachePolicy policy) {
  const auto from = static_cast<int32_t>(row);
  if (linear) {
    ptx::cp_async_bulk_tensor_3d(to, &map, static_cast<int32_t>(k_tile * kRowScaleBytes), from,
                                 batch, full, policy);
  } else {
    ptx::cp_async_bulk_tensor_4d(to, &map, 0, static_cast<int32_t>(k_tile * kMmaSteps), from, batch,
                                 full, policy);
  }
}

// Bytes of a stage, with scales as they lie.
template <Config kCfg>
DUALGEMM_DEVICE uint32_t stage_bytes_of_tile(const Params& params, const ScalesOfA& scales) {
  constexpr uint32_t kTiles = Budget<kCfg>::kScaleBytes;
  constexpr uint32_t kWeightRows = kCfg.tile_n * kRowScaleBytes;
  return Budget<kCfg>::kWeightBytes + Budget<kCfg>::kABytes +
         (params.linear_gate ? kWeightRows : kTiles) + (params.linear_up ? kWeightRows : kTiles) +
         (params.linear_a ? kCfg.tile_m * kRowScaleBytes
          : scales.in_two ? 2 * kTiles
                          : kTiles);
}

// By one thread: a stage's rows of both weights, and their scales.
template <Config kCfg>
DUALGEMM_DEVICE void load_weights_of_tile(const Params& params, Stage<kCfg>& stage, uint32_t k_tile,
                                          const Tile& tile, ptx::Barrier* full,
                                          ptx::CachePolicy policy) {
  if (params.prepared) {
    load_prepared_codes(params, stage, k_tile, tile, full, policy);
    load_prepared_scales(params, stage.sf_weights[0], stage.sf_weights[1], k_tile, tile, full,
                         policy);
    return;
  }
  const auto expert = static_cast<int32_t>(tile.batch);
  const uint32_t gate_row = params.linear_gate ? tile.n_begin : tile.n_begin / kScaleTileRows;
  const uint32_t up_row = params.linear_up ? tile.n_begin : tile.n_begin / kScaleTileRows;
  load_weights(params, stage, k_tile, tile, full, policy);
  load_scales(stage.sf_weights[0], params.map_sf_gate, params.linear_gate, k_tile, gate_row, expert,
              full, policy);
  load_scales(stage.sf_weights[1], params.map_sf_up, params.linear_up, k_tile, up_row, expert, full,
              policy);
}

// A stage's rows of A, and their scales.
template <Config kCfg>
DUALGEMM_DEVICE void load_a_of_tile(const Params& params, Stage<kCfg>& stage, uint32_t k_tile,
                                    const GroupTile& rows, const ScalesOfA& scales,
                                    ptx::Barrier* full, ptx::CachePolicy policy) {
  const int32_t batch = params.groups.one_batch ? 0 : static_cast<int32_t>(rows.expert);
  const uint32_t first = params.linear_a ? rows.begin : scales.tile;
  ptx::cp_async_bulk_tensor_3d(stage.a, &params.map_a, static_cast<int32_t>(k_tile * kRowBytes),
                               static_cast<int32_t>(rows.begin), batch, full, policy);
  load_scales(stage.sf_a[0], params.map_sf_a, params.linear_a, k_tile, first, batch, full, policy);
  if (!params.linear_a && scales.in_two)
    load_scales(stage.sf_a[1], params.map_sf_a, false, k_tile, first + 1, batch, full, policy);
}

// Runs on: one thread of kLoadWarp.   Waits: the grid before, but for prepared weights without a
// table; ab_empty[stage].   Arrives: ab_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void load_tiles(const Params& params, GroupedStorage<kCfg>& smem) {
  const ptx::CachePolicy keep = ptx::createpolicy_evict_last();
  const ptx::CachePolicy pass = ptx::createpolicy_evict_first();
  GroupedTiles<kCfg.tile_m> tiles(params);
  const auto load_weights = [&](uint32_t index, uint32_t k_tile, uint32_t bytes) {
    ptx::mbarrier_arrive_expect_tx(&smem.ab_full[index], bytes);
    load_weights_of_tile(params, smem.stages[index], k_tile, tile_of<kCfg>(tiles),
                         &smem.ab_full[index], pass);
  };
  uint32_t early = tiles.is_valid() ? blackwell::early_stages(params, smem.kStages) : 0;
#pragma unroll 1
  for (uint32_t k_tile = 0; k_tile < early; ++k_tile) {
    load_weights(k_tile, k_tile,
                 stage_bytes_of_tile<kCfg>(params, scales_of_a(params, tiles.rows())));
  }
  ptx::griddepcontrol_wait();
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (; tiles.is_valid(); tiles.advance(params), early = 0) {
    tiles.ask_for_next(params);
    const ScalesOfA scales = scales_of_a(params, tiles.rows());
    const uint32_t bytes = stage_bytes_of_tile<kCfg>(params, scales);
#pragma unroll 1
    for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
      ptx::mbarrier_wait_parity(&smem.ab_empty[ring.stage], ring.round_parity ^ 1);
      if (k_tile >= early) load_weights(ring.stage, k_tile, bytes);
      load_a_of_tile(params, smem.stages[ring.stage], k_tile, tiles.rows(), scales,
                     &smem.ab_full[ring.stage], keep);
    }
  }
}

// By a warp: one weight's scales of the tile's columns, to words `to` and `to` + 1. `first`: their
// first word in scale tiles.
template <Config kCfg>
DUALGEMM_DEVICE void take_weight_scales(
    const uint32_t (&scales)[kMmaSteps][kGroupRows][kScaleTileCols], bool linear, uint32_t first,
    uint32_t lane, int to, ScaleWords& words) {
  static_assert(Budget<kCfg>::kGroups == 2, "tiles of groups have 64 columns");
  if (linear) {
    take_row(scales, lane, to, words);
    take_row(scales, kGroupRows + lane, to + 1, words);
    return;
  }
#pragma unroll
  for (int step = 0; step < kMmaSteps; ++step) {
    const uint2 pair = *reinterpret_cast<const uint2*>(&scales[step][lane][first]);
    words[step][to] = pair.x, words[step][to + 1] = pair.y;
  }
}

// The same of `rows` rows of A, of which the first is row `first` of the stage's scale tiles; zeros
// for the rest of the MMA's rows.
template <Config kCfg>
DUALGEMM_DEVICE void take_scales_of_a(const Stage<kCfg>& stage, bool linear, uint32_t first,
                                      uint32_t rows, uint32_t lane, ScaleWords& words) {
#pragma unroll
  for (int word = 0; word < (kCfg.tile_m + kGroupRows - 1) / kGroupRows; ++word) {
    const uint32_t in_group = word * kGroupRows + lane;
    if (in_group >= rows) continue;
    if (linear) {
      take_row(stage.sf_a, in_group, word, words);
      continue;
    }
    const uint32_t row = first + in_group, in_tile = row % kScaleTileRows;
#pragma unroll
    for (int step = 0; step < kMmaSteps; ++step) {
      words[step][word] =
          stage.sf_a[row / kScaleTileRows][step][in_tile % kGroupRows][in_tile / kGroupRows];
    }
  }
}

// By a warp: a stage's scales as the MMA wants them, in the place of Gate's and of A's first tile.
template <Config kCfg>
DUALGEMM_DEVICE void arrange_scales(const Params& params, Stage<kCfg>& stage, uint32_t word,
                                    uint32_t first, uint32_t rows, uint32_t lane) {
  ScaleWords weights, a{};
  take_weight_scales<kCfg>(stage.sf_weights[0], params.linear_gate, word, lane, 0, weights);
  take_weight_scales<kCfg>(stage.sf_weights[1], params.linear_up, word, lane, 2, weights);
  take_scales_of_a(stage, params.linear_a, first, rows, lane, a);
  __syncwarp();  // all rows are read, and may be written
  write_scales(weights, lane, stage.sf_weights[0]);
  write_scales(a, lane, stage.sf_a[0]);
}

// Runs on: warps kFirstMixWarp .. of kEpilogueWarps, each for its own stages of the ring, as
// mix_scales() says why.   Waits: ab_full[stage].   Arrives: sf_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void mix_tiles(const Params& params, GroupedStorage<kCfg>& smem, uint32_t warp) {
  const uint32_t lane = threadIdx.x % 32;
  uint32_t index = warp, round_parity = 0, k_tile = warp;  // k_tile: of the tile, or behind it
#pragma unroll 1
  for (GroupedTiles<kCfg.tile_m> tiles(params); tiles.is_valid(); tiles.advance(params)) {
    tiles.ask_for_next(params);
    const uint32_t word = tile_of<kCfg>(tiles).n_begin % kScaleTileRows / kGroupRows;
    const uint32_t first = scales_of_a(params, tiles.rows()).first;
    const uint32_t rows = tiles.rows().end - tiles.rows().begin;
#pragma unroll 1
    while (k_tile < params.num_k_tiles) {
      Stage<kCfg>& stage = smem.stages[index];
      ptx::mbarrier_wait_parity(&smem.ab_full[index], round_parity);
      arrange_scales(params, stage, word, first, rows, lane);
      ptx::fence_proxy_async_shared();
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(&smem.sf_full[index]);
      index += kEpilogueWarps, k_tile += kEpilogueWarps;
      if (index >= smem.kStages) {  // on to its first stage of the next round
        k_tile += smem.kStages - index + warp;
        index = warp, round_parity ^= 1;
      }
    }
    k_tile -= params.num_k_tiles;
  }
}

// Runs on: one thread of kMmaWarp.   Waits: acc_empty[acc], ab_full[stage], sf_full[stage].
// Arrives: ab_empty[stage], acc_full[acc].
template <Config kCfg>
DUALGEMM_DEVICE void multiply_tiles(const Params& params, GroupedStorage<kCfg>& smem,
                                    uint32_t tmem_base) {
  const uint32_t tiles = blackwell::tiles_of_cta<kCfg.tile_m>(params);
  uint64_t stages_left = uint64_t{tiles} * params.num_k_tiles;
  RingPosition<smem.kStages> ring;
  RingPosition<Budget<kCfg>::kAccs> acc;
#pragma unroll 1
  for (uint32_t tile = 0; tile < tiles; ++tile, acc.advance()) {
    ptx::mbarrier_wait_parity(&smem.acc_empty[acc.stage], acc.round_parity ^ 1);
#pragma unroll 1
    for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
      ptx::mbarrier_wait_parity(&smem.ab_full[ring.stage], ring.round_parity);
      ptx::mbarrier_wait_parity(&smem.sf_full[ring.stage], ring.round_parity);
      ptx::tcgen05_fence_after_thread_sync();
      multiply_stage(smem, ring.stage, tmem_base, Budget<kCfg>::kAccCol + acc.stage * kCfg.tile_m,
                     k_tile == 0);
      // Each phase that completes is waited for: nothing arrives at a CTA that has gone.
      if (stages_left > smem.kStages) ptx::tcgen05_commit(&smem.ab_empty[ring.stage]);
      --stages_left;
    }
    ptx::tcgen05_commit(&smem.acc_full[acc.stage]);
  }
}

}  // namespace dualgemm::cuda::sm100a_skinny
