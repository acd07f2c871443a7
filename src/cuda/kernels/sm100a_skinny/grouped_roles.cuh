// The four roles over the tiles of groups. Part of grouped.cuh, which has the tables.
#pragma once

#include "cuda/kernels/sm100a_skinny/epilogue.cuh"
#include "cuda/kernels/sm100a_skinny/mainloop.cuh"

namespace dualgemm::cuda::sm100a_skinny {

// Runs on: one thread of kLoadWarp.   Waits: ab_empty[stage].   Arrives: ab_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void load_tiles(const Params& params, GroupedStorage<kCfg>& smem) {
  const ptx::CachePolicy keep = ptx::createpolicy_evict_last();
  const ptx::CachePolicy pass = ptx::createpolicy_evict_first();
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (GroupedTiles tiles(params); tiles.is_valid(); tiles.advance()) {
    tiles.ask_for_next(params);
    const Tile tile = tile_of<kCfg>(tiles);
    const ScalesOfA scales = scales_of_a(params, tiles.rows());
    const auto m_begin = static_cast<int32_t>(tiles.rows().begin);
    const auto scale_tile = static_cast<int32_t>(scales.tile);
    const auto batch = params.groups.one_batch ? 0 : static_cast<int32_t>(tile.batch);
    const uint32_t bytes = sizeof(Stage<kCfg>) - (scales.in_two ? 0 : Budget<kCfg>::kScaleBytes);
#pragma unroll 1
    for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
      Stage<kCfg>& stage = smem.stages[ring.stage];
      ptx::Barrier* const full = &smem.ab_full[ring.stage];
      ptx::mbarrier_wait_parity(&smem.ab_empty[ring.stage], ring.round_parity ^ 1);
      ptx::mbarrier_arrive_expect_tx(full, bytes);
      load_weights(params, stage, k_tile, tile, full, pass);
      const auto k_byte = static_cast<int32_t>(k_tile * kRowBytes);
      const auto k_scale_tile = static_cast<int32_t>(k_tile * kMmaSteps);
      ptx::cp_async_bulk_tensor_3d(stage.a, &params.map_a, k_byte, m_begin, batch, full, keep);
      ptx::cp_async_bulk_tensor_4d(stage.sf_a[0], &params.map_sf_a, 0, k_scale_tile, scale_tile,
                                   batch, full, keep);
      if (scales.in_two) {
        ptx::cp_async_bulk_tensor_4d(stage.sf_a[1], &params.map_sf_a, 0, k_scale_tile,
                                     scale_tile + 1, batch, full, keep);
      }
    }
  }
}

// By a warp: the scales of `rows` rows of A, the first of which is row `first` of the stage's scale
// tiles, to row 0 and those behind it; zeros for the rest of the MMA's rows.
template <Config kCfg>
DUALGEMM_DEVICE void align_scales_of_a(Stage<kCfg>& stage, uint32_t first, uint32_t rows,
                                       uint32_t lane) {
  constexpr uint32_t kWords = (kCfg.tile_m + kGroupRows - 1) / kGroupRows;
  uint32_t words[kMmaSteps][kScaleTileCols] = {};
#pragma unroll
  for (uint32_t word = 0; word < kWords; ++word) {
    if (word * kGroupRows + lane >= rows) continue;
    const uint32_t row = first + word * kGroupRows + lane, in_tile = row % kScaleTileRows;
#pragma unroll
    for (int step = 0; step < kMmaSteps; ++step) {
      words[step][word] =
          stage.sf_a[row / kScaleTileRows][step][in_tile % kGroupRows][in_tile / kGroupRows];
    }
  }
  __syncwarp();  // all rows are read, and may be written
#pragma unroll
  for (int step = 0; step < kMmaSteps; ++step) {
    const uint32_t(&row)[kScaleTileCols] = words[step];
    *reinterpret_cast<uint4*>(stage.sf_a[0][step][lane]) =
        make_uint4(row[0], row[1], row[2], row[3]);
  }
}

// Runs on: warps kFirstMixWarp .. of kEpilogueWarps, each for its own stages of the ring, as
// mix_scales() says why.   Waits: ab_full[stage].   Arrives: sf_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void mix_tiles(const Params& params, GroupedStorage<kCfg>& smem, uint32_t warp) {
  const uint32_t lane = threadIdx.x % 32;
  uint32_t index = warp, round_parity = 0, k_tile = warp;  // k_tile: of the tile, or behind it
#pragma unroll 1
  for (GroupedTiles tiles(params); tiles.is_valid(); tiles.advance()) {
    tiles.ask_for_next(params);
    const uint32_t word = tile_of<kCfg>(tiles).n_begin % kScaleTileRows / kGroupRows;
    const uint32_t first = scales_of_a(params, tiles.rows()).first;
    const uint32_t rows = tiles.rows().end - tiles.rows().begin;
#pragma unroll 1
    while (k_tile < params.num_k_tiles) {
      Stage<kCfg>& stage = smem.stages[index];
      ptx::mbarrier_wait_parity(&smem.ab_full[index], round_parity);
      mix_weights(stage, word, lane);
      align_scales_of_a(stage, first, rows, lane);
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
  const uint32_t tiles = tiles_of_cta(params);
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

// Runs on: warps 0 .. kEpilogueWarps-1.   Waits: acc_full[acc].   Arrives: acc_empty[acc].
template <Config kCfg>
DUALGEMM_DEVICE void finish_tiles(const Params& params, GroupedStorage<kCfg>& smem,
                                  uint32_t tmem_base, uint32_t warp) {
  constexpr uint32_t kRows = Budget<kCfg>::kTurnRows;
  RingPosition<Budget<kCfg>::kAccs> acc;
  uint32_t place = 0;  // of the turn, in `exchange`
#pragma unroll 1
  for (GroupedTiles tiles(params); tiles.is_valid(); tiles.advance(), acc.advance()) {
    tiles.ask_for_next(params);
    const Tile tile = tile_of<kCfg>(tiles);
    const WarpColumns mine = columns_of_warp<kCfg>(tile, warp);
    const ColumnFactors factors = factors_of(params, tile.batch, mine.col);
    const OutputRows rows = rows_of_group(params, tiles.rows());
    const uint32_t begin = tiles.rows().begin, num_rows = rows.end - begin;
    const uint32_t from = tmem_base + Budget<kCfg>::kAccCol + acc.stage * kCfg.tile_m +
                          (32 * warp << 16);  // its own quarter

    if (params.output == OutputType::kE2M1 && !mine.up)
      clear_scales(params, rows, begin, kCfg.tile_m, mine.col - threadIdx.x % 32);
    ptx::mbarrier_wait_parity(&smem.acc_full[acc.stage], acc.round_parity);
    __syncwarp();
    ptx::tcgen05_fence_after_thread_sync();
#pragma unroll 1
    for (uint32_t turn = 0; turn < num_rows; turn += 2 * kRows, place ^= 1) {
      // Gate's warps finish the first rows of a turn, Up's the others.
      const uint32_t own = mine.up ? kRows : 0, others = kRows - own;
      if (turn + others < num_rows) {
        leave_turn<kCfg>(from + turn + others, smem.exchange[place] + others, mine.in_tile);
      }
      ptx::barrier_sync(kExchangeBarrier, Budget<kCfg>::kUsedRows);
      if (turn + own < num_rows) {
        finish_turn<kCfg>(params, rows, begin + turn + own, mine, factors, from + turn + own,
                          smem.exchange[place] + own);
      }
    }
    ptx::tcgen05_fence_before_thread_sync();
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&smem.acc_empty[acc.stage]);
  }
}

}  // namespace dualgemm::cuda::sm100a_skinny
