// What is other with prepared weights: they are complete, so that they are asked for, as far as the
// ring goes, while the grid before may be at work, and their scales are arranged meanwhile. Only A,
// which has a thread of its own for that, and the epilogue wait. Part of dual_gemm.cuh, which has
// the tables.
#pragma once

#include "cuda/kernels/blackwell/packed_unit.hpp"
#include "cuda/kernels/blackwell/scale_words.cuh"
#include "cuda/ptx/proxy_fence.cuh"

namespace dualgemm::cuda::sm100a_skinny {

using blackwell::kUnitCols;
using blackwell::ScaleWords;
using blackwell::take_row;
using blackwell::write_scales;

// By one thread: a stage's rows of both weights.
template <Config kCfg>
DUALGEMM_DEVICE void load_prepared_codes(const Params& params, Stage<kCfg>& stage, uint32_t k_tile,
                                         const Tile& tile, ptx::Barrier* full,
                                         ptx::CachePolicy policy) {
  const auto unit = static_cast<int32_t>(tile.n_begin / kUnitCols);
  const auto k = static_cast<int32_t>(k_tile), batch = static_cast<int32_t>(tile.batch);
  ptx::cp_async_bulk_tensor_4d(stage.gate, &params.map_gate, 0, unit, k, batch, full, policy);
  ptx::cp_async_bulk_tensor_4d(stage.up, &params.map_up, 0, unit, k, batch, full, policy);
}

// And their scales, in rows.
DUALGEMM_DEVICE void load_prepared_scales(const Params& params, void* gate, void* up,
                                          uint32_t k_tile, const Tile& tile, ptx::Barrier* full,
                                          ptx::CachePolicy policy) {
  const auto unit = static_cast<int32_t>(tile.n_begin / kUnitCols);
  const auto k = static_cast<int32_t>(k_tile), batch = static_cast<int32_t>(tile.batch);
  ptx::cp_async_bulk_tensor_4d(gate, &params.map_sf_gate, 0, unit, k, batch, full, policy);
  ptx::cp_async_bulk_tensor_4d(up, &params.map_sf_up, 0, unit, k, batch, full, policy);
}

// Runs on: one thread of kLoadWarp.   Waits: ab_empty[stage].   Arrives: sf_full[stage],
// ab_full[stage]. Scales come first: they are arranged while the rest is on its way.
template <Config kCfg>
DUALGEMM_DEVICE void load_units(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile) {
  constexpr uint32_t kScaleRowBytes = Budget<kCfg>::kUsedRows * kRowScaleBytes;
  const ptx::CachePolicy pass = ptx::createpolicy_evict_first();
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
    Stage<kCfg>& stage = smem.stages[ring.stage];
    if (k_tile >= smem.kStages)  // the stage was used in the round before, of the other parity
      ptx::mbarrier_wait_parity(&smem.ab_empty[ring.stage], ring.round_parity ^ 1);
    auto* const scales = reinterpret_cast<uint8_t*>(stage.sf_weights[0]);
    ptx::mbarrier_arrive_expect_tx(&smem.sf_full[ring.stage], kScaleRowBytes);
    load_prepared_scales(params, scales, scales + kScaleRowBytes / 2, k_tile, tile,
                         &smem.sf_full[ring.stage], pass);
    ptx::mbarrier_arrive_expect_tx(&smem.ab_full[ring.stage], Budget<kCfg>::kWeightBytes);
    load_prepared_codes(params, stage, k_tile, tile, &smem.ab_full[ring.stage], pass);
  }
}

// Runs on: one thread of kLoadAWarp.   Waits: the grid before, ab_empty[stage].   Arrives:
// ab_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void load_a(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile) {
  const ptx::CachePolicy keep = ptx::createpolicy_evict_last();
  RingPosition<smem.kStages> ring;
  ptx::griddepcontrol_wait();
#pragma unroll 1
  for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
    Stage<kCfg>& stage = smem.stages[ring.stage];
    if (k_tile >= smem.kStages)
      ptx::mbarrier_wait_parity(&smem.ab_empty[ring.stage], ring.round_parity ^ 1);
    ptx::mbarrier_arrive_expect_tx(&smem.ab_full[ring.stage],
                                   Budget<kCfg>::kABytes + Budget<kCfg>::kScaleBytes);
    load_rows_of_a(params, stage, k_tile, tile, &smem.ab_full[ring.stage], keep);
  }
}

// By a warp: the weights' scales as the MMA wants them, in the place in which they have arrived.
template <Config kCfg>
DUALGEMM_DEVICE void arrange_weights(Stage<kCfg>& stage, uint32_t lane) {
  constexpr int kGroups = Budget<kCfg>::kGroups;
  ScaleWords words{};
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const uint32_t row = group * kGroupRows + lane;
    take_row(stage.sf_weights[0], row, group, words);
    take_row(stage.sf_weights[0], kCfg.tile_n + row, kGroups + group, words);
  }
  __syncwarp();  // all rows are read, and may be written
  write_scales(words, lane, stage.sf_weights[0]);
}

// Runs on: warps 0 .. kEpilogueWarps-1, as mix_scales().   Waits: sf_full[stage].   Arrives:
// ab_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void arrange_units(const Params& params, SharedStorage<kCfg>& smem, uint32_t warp) {
  const uint32_t lane = threadIdx.x % 32;
  for_stages_of_warp<smem.kStages>(params, warp, [&](uint32_t index, uint32_t parity) {
    ptx::mbarrier_wait_parity(&smem.sf_full[index], parity);
    arrange_weights(smem.stages[index], lane);
    ptx::fence_proxy_async_shared();
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(&smem.ab_full[index]);
  });
}

}  // namespace dualgemm::cuda::sm100a_skinny
