// The three roles in the order of the data flow. Part of dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/kernels/blackwell/finish_columns.cuh"
#include "cuda/kernels/blackwell/stage_descriptors.cuh"

namespace dualgemm::cuda::sm100a {

// Runs on: one thread of kLoadWarp.   Waits: ab_empty[stage].   Arrives: ab_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void load_operands(const Params& params, SharedStorage<kCfg>& smem, Tile tile) {
  // Weights are read once per column of tiles, at about the same time; A by all columns.
  const ptx::CachePolicy keep = ptx::createpolicy_evict_last();
  const ptx::CachePolicy pass = ptx::createpolicy_evict_first();
  const auto m_begin = static_cast<int32_t>(tile.m_begin);
  const auto n_begin = static_cast<int32_t>(tile.n_begin);
  const auto batch = static_cast<int32_t>(tile.batch);
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
    Stage<kCfg>& stage = smem.stages[ring.stage];
    ptx::Barrier* const full = &smem.ab_full[ring.stage];
    if (k_tile >= smem.kStages) {  // the stage was used in the round before, of the other parity
      ptx::mbarrier_wait_parity(&smem.ab_empty[ring.stage], ring.round_parity ^ 1);
    }
    ptx::mbarrier_arrive_expect_tx(full, sizeof(Stage<kCfg>));
    const auto k_byte = static_cast<int32_t>(k_tile * kRowBytes);
    const auto k_scale_tile = static_cast<int32_t>(k_tile * kMmaSteps);
    const int32_t n_scale_tile = n_begin / kScaleTileRows, m_scale_tile = m_begin / kScaleTileRows;
    ptx::cp_async_bulk_tensor_3d(stage.gate, &params.map_gate, k_byte, n_begin, batch, full, pass);
    ptx::cp_async_bulk_tensor_3d(stage.up, &params.map_up, k_byte, n_begin, batch, full, pass);
    ptx::cp_async_bulk_tensor_3d(stage.a, &params.map_a, k_byte, m_begin, batch, full, keep);
    ptx::cp_async_bulk_tensor_4d(stage.sf_gate, &params.map_sf_gate, 0, k_scale_tile, n_scale_tile,
                                 batch, full, pass);
    ptx::cp_async_bulk_tensor_4d(stage.sf_up, &params.map_sf_up, 0, k_scale_tile, n_scale_tile,
                                 batch, full, pass);
    ptx::cp_async_bulk_tensor_4d(stage.sf_a, &params.map_sf_a, 0, k_scale_tile, m_scale_tile, batch,
                                 full, keep);
  }
}

// Runs on: one thread of kMmaWarp.   Waits: ab_full[stage].   Arrives: ab_empty[stage], acc_full.
template <Config kCfg>
DUALGEMM_DEVICE void issue_mma(const Params& params, SharedStorage<kCfg>& smem, Tile tile,
                               uint32_t tmem_base) {
  using Cols = Budget<kCfg>;
  constexpr uint32_t kInstruction = nvfp4_instruction_descriptor(kTileM, kCfg.tile_n);
  constexpr uint32_t kStepBytes = kMmaK / 2;
  // A tile of 64 columns uses one half of its 128-row scale tile: two of the four TMEM columns.
  const uint32_t half_tile_col = tile.n_begin % kScaleTileRows / 32;
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
    ptx::mbarrier_wait_parity(&smem.ab_full[ring.stage], ring.round_parity);
    ptx::tcgen05_fence_after_thread_sync();
    const blackwell::StageDescriptors from = blackwell::describe(smem.stages[ring.stage]);
#pragma unroll
    for (int step = 0; step < kMmaSteps; ++step) {
      const uint32_t sf_a =
          tmem_base + Cols::kScaleCol + ring.stage * Cols::kStageCols + step * Cols::kStepCols;
      const uint32_t sf_gate = sf_a + kScaleTileCols, sf_up = sf_gate + kScaleTileCols;
      const uint32_t scale = step * kScaleTileBytes, data = step * kStepBytes;
      ptx::tcgen05_cp_32x128b_warpx4(sf_a, advance_descriptor(from.sf_a, scale));
      ptx::tcgen05_cp_32x128b_warpx4(sf_gate, advance_descriptor(from.sf_gate, scale));
      ptx::tcgen05_cp_32x128b_warpx4(sf_up, advance_descriptor(from.sf_up, scale));
      const uint32_t accumulate = k_tile != 0 || step != 0;
      ptx::tcgen05_mma_mxf4nvf4_block16<ptx::CollectorA::kFill>(
          tmem_base + Cols::kAccGateCol, advance_descriptor(from.a, data),
          advance_descriptor(from.gate, data), kInstruction, sf_a, sf_gate + half_tile_col,
          accumulate);
      ptx::tcgen05_mma_mxf4nvf4_block16<ptx::CollectorA::kLastUse>(
          tmem_base + Cols::kAccUpCol, advance_descriptor(from.a, data),
          advance_descriptor(from.up, data), kInstruction, sf_a, sf_up + half_tile_col, accumulate);
    }
    if (k_tile + smem.kStages < params.num_k_tiles) ptx::tcgen05_commit(&smem.ab_empty[ring.stage]);
  }
  ptx::tcgen05_commit(&smem.acc_full);
}

// Runs on: warps 0 .. kEpilogueWarps-1.   Waits: acc_full.   Arrives: nothing; teardown's CTA
// barrier says that the accumulators are read.
template <Config kCfg>
DUALGEMM_DEVICE void epilogue(const Params& params, SharedStorage<kCfg>& smem, Tile tile,
                              uint32_t tmem_base, uint32_t warp) {
  using Cols = Budget<kCfg>;
  const uint32_t row = tile.m_begin + threadIdx.x;
  const blackwell::RowScales scales = blackwell::row_scales(params, tile.batch, row);
  const uint32_t quarter = tmem_base + (32 * warp << 16);  // the lane field: this warp's own

  if constexpr (kCfg.output == OutputType::kE2M1) {
    if (row >= params.m)
      blackwell::clear_scales(params, tile.batch, row, tile.n_begin, tile.n_begin + kCfg.tile_n);
    __syncwarp();
  }
  ptx::mbarrier_wait_parity(&smem.acc_full, 0);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
  if (tile.m_begin + 32 * warp >= params.m) return;  // no row of this warp exists
#pragma unroll 1
  for (uint32_t col = 0; col < kCfg.tile_n && tile.n_begin + col < params.n; col += kEpilogueCols) {
    float g[kEpilogueCols], u[kEpilogueCols];
    ptx::tcgen05_ld_32x32b_x16_pair(quarter + Cols::kAccGateCol + col,
                                    quarter + Cols::kAccUpCol + col, g, u);
    blackwell::finish_columns<kCfg.output>(params, scales, tile.batch, row, tile.n_begin + col, g,
                                           u);
  }
}

}  // namespace dualgemm::cuda::sm100a
