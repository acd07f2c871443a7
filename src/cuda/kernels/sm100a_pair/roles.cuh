// What follows the loads, in the order of the data flow. Part of dual_gemm.cuh, which has the
// tables.
#pragma once

#include "cuda/kernels/sm100a/epilogue.cuh"
#include "cuda/kernels/sm100a/stage_descriptors.cuh"
#include "cuda/kernels/sm100a_pair/scale_tiles.cuh"

namespace dualgemm::cuda::sm100a_pair {

// Runs on: the warps of the epilogue; `index` counts them, each for the stage of that number: of two
// rounds of a stage a warp that saw only the second could take the barrier's phase before the first
// for it.   Waits: sf_full[stage].   Arrives: ab_full[stage] of the leader.
template <Config kCfg>
DUALGEMM_DEVICE void arrange_scales(const Params& params, SharedStorage<kCfg>& smem,
                                    uint32_t index) {
  if (index >= smem.kStages) return;
  Stage<kCfg>& stage = smem.stages[index];
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t full = ptx::mapa(&smem.ab_full[index], 0);
  uint32_t round_parity = 0;
#pragma unroll 1
  for (uint32_t k_tile = index; k_tile < params.num_k_tiles; k_tile += smem.kStages) {
    ptx::mbarrier_wait_parity(&smem.sf_full[index], round_parity);
    arrange_stage<kCfg>(stage, lane);
    ptx::fence_proxy_async_shared();
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive_cluster(full);
    __syncwarp();
    round_parity ^= 1;
  }
}

// Runs on: one thread of the leader's kMmaWarp.   Waits: ab_full[stage].
// Arrives: ab_empty[stage] and acc_full of both CTAs.
template <Config kCfg>
DUALGEMM_DEVICE void issue_mma(const Params& params, SharedStorage<kCfg>& smem, Tile tile,
                               uint32_t tmem_base) {
  using Cols = Budget<kCfg>;
  constexpr uint32_t kInstruction = nvfp4_instruction_descriptor(kTileM, kCfg.tile_n);
  constexpr uint32_t kStepBytes = kMmaK / 2;
  // Unpacked, a tile of 64 columns uses one half of its 128-row scale tile: two of the four TMEM
  // columns.
  const uint32_t half_tile_col = kCfg.prepared ? 0 : tile.n_begin % kScaleTileRows / 32;
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
    wait_for_stage<kCfg>(&smem.ab_full[ring.stage], ring.round_parity);
    ptx::tcgen05_fence_after_thread_sync();
    const sm100a::StageDescriptors from = describe_stage(smem.stages[ring.stage]);
#pragma unroll
    for (int step = 0; step < kMmaSteps; ++step) {
      const uint32_t sf_a =
          tmem_base + Cols::kScaleCol + ring.stage * Cols::kStageCols + step * Cols::kStepCols;
      const uint32_t sf_gate = sf_a + kScaleTileCols, sf_up = sf_gate + Cols::kUpScaleCol;
      const uint32_t scale = step * kScaleTileBytes, data = step * kStepBytes;
      const uint32_t weight_scale = kCfg.prepared ? Cols::kWeightScaleTiles * scale : scale;
      ptx::tcgen05_cp_32x128b_warpx4_pair(sf_a, advance_descriptor(from.sf_a, scale));
      ptx::tcgen05_cp_32x128b_warpx4_pair(sf_gate, advance_descriptor(from.sf_gate, weight_scale));
      if constexpr (!Cols::kScalesShareTile)
        ptx::tcgen05_cp_32x128b_warpx4_pair(sf_up, advance_descriptor(from.sf_up, weight_scale));
      const uint32_t accumulate = k_tile != 0 || step != 0;
      ptx::tcgen05_mma_mxf4nvf4_block16_pair<ptx::CollectorA::kFill>(
          tmem_base + Cols::kAccGateCol, advance_descriptor(from.a, data),
          advance_descriptor(from.gate, data), kInstruction, sf_a, sf_gate + half_tile_col,
          accumulate);
      ptx::tcgen05_mma_mxf4nvf4_block16_pair<ptx::CollectorA::kLastUse>(
          tmem_base + Cols::kAccUpCol, advance_descriptor(from.a, data),
          advance_descriptor(from.up, data), kInstruction, sf_a, sf_up + half_tile_col, accumulate);
    }
    if (k_tile + smem.kStages < params.num_k_tiles)
      ptx::tcgen05_commit_pair(&smem.ab_empty[ring.stage], kBothCtas);
  }
  ptx::tcgen05_commit_pair(&smem.acc_full, kBothCtas);
}

// Runs on: the other eight warps of each CTA.   Waits: the grid before, acc_full.   Arrives:
// nothing; teardown's cluster barrier says that the accumulators are read.
template <Config kCfg>
DUALGEMM_DEVICE void epilogue(const Params& params, SharedStorage<kCfg>& smem, Tile tile,
                              uint32_t tmem_base, uint32_t warp) {
  using Cols = Budget<kCfg>;
  const uint32_t group = warp > kMmaWarp ? 1 : 0;
  const uint32_t first_lane = 32 * (warp % 4);
  const uint32_t first_row = tile.m_begin + first_lane;
  const uint32_t row = first_row + threadIdx.x % 32;
  // Of the tile.
  const uint32_t first_col = group * Cols::kFirstGroupCols;
  const uint32_t end_col = group == 0 ? Cols::kFirstGroupCols : kCfg.tile_n;
  const uint32_t quarter = tmem_base + (first_lane << 16);  // the lane field: this warp's own

  ptx::griddepcontrol_wait();  // D may still be read, and what scales may still be written
  const sm100a::RowScales scales = sm100a::row_scales(params, tile.batch, row);
  if constexpr (kCfg.output == OutputType::kE2M1) {
    // A CTA without any row has no tile of scales either.
    if (tile.m_begin < params.m && row >= params.m) {
      sm100a::clear_scales(params, tile.batch, row, tile.n_begin + first_col,
                           tile.n_begin + end_col);
    }
    __syncwarp();
  }
  ptx::mbarrier_wait_parity(&smem.acc_full, 0);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
  if (first_row >= params.m) return;  // no row of this warp exists
#pragma unroll 1
  for (uint32_t col = first_col; col < end_col && tile.n_begin + col < params.n;
       col += kEpilogueCols) {
    float g[kEpilogueCols], u[kEpilogueCols];
    ptx::tcgen05_ld_32x32b_x16_pair(quarter + Cols::kAccGateCol + col,
                                    quarter + Cols::kAccUpCol + col, g, u);
    sm100a::finish_columns<kCfg.output>(params, scales, tile.batch, row, tile.n_begin + col, g, u);
  }
}

}  // namespace dualgemm::cuda::sm100a_pair
