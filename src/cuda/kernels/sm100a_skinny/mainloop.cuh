// From global memory to the accumulator: three roles in the order of the data flow. Part of
// dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/ptx/proxy_fence.cuh"
#include "cuda/ptx/tcgen05_single.cuh"

namespace dualgemm::cuda::sm100a_skinny {

// By one thread: a stage's rows of both weights.
template <Config kCfg>
DUALGEMM_DEVICE void load_weights(const Params& params, Stage<kCfg>& stage, uint32_t k_tile,
                                  const Tile& tile, ptx::Barrier* full, ptx::CachePolicy policy) {
  const auto k_byte = static_cast<int32_t>(k_tile * kRowBytes);
  const auto n_begin = static_cast<int32_t>(tile.n_begin);
  const auto batch = static_cast<int32_t>(tile.batch);
  ptx::cp_async_bulk_tensor_3d(stage.gate, &params.map_gate, k_byte, n_begin, batch, full, policy);
  ptx::cp_async_bulk_tensor_3d(stage.up, &params.map_up, k_byte, n_begin, batch, full, policy);
}

// And their scales, in scale tiles.
template <Config kCfg>
DUALGEMM_DEVICE void load_weight_scales(const Params& params, Stage<kCfg>& stage, uint32_t k_tile,
                                        const Tile& tile, ptx::Barrier* full,
                                        ptx::CachePolicy policy) {
  const auto k_scale_tile = static_cast<int32_t>(k_tile * kMmaSteps);
  const auto n_scale_tile = static_cast<int32_t>(tile.n_begin / kScaleTileRows);
  const auto batch = static_cast<int32_t>(tile.batch);
  // Two or four CTAs read a scale tile of the weights, at about the same time.
  ptx::cp_async_bulk_tensor_4d(stage.sf_weights[0], &params.map_sf_gate, 0, k_scale_tile,
                               n_scale_tile, batch, full, policy);
  ptx::cp_async_bulk_tensor_4d(stage.sf_weights[1], &params.map_sf_up, 0, k_scale_tile,
                               n_scale_tile, batch, full, policy);
}

// By one thread: a stage's rows of A and their scales.
template <Config kCfg>
DUALGEMM_DEVICE void load_rows_of_a(const Params& params, Stage<kCfg>& stage, uint32_t k_tile,
                                    const Tile& tile, ptx::Barrier* full, ptx::CachePolicy policy) {
  const auto k_byte = static_cast<int32_t>(k_tile * kRowBytes);
  const auto k_scale_tile = static_cast<int32_t>(k_tile * kMmaSteps);
  const auto batch = static_cast<int32_t>(tile.batch);
  ptx::cp_async_bulk_tensor_3d(stage.a, &params.map_a, k_byte, 0, batch, full, policy);
  ptx::cp_async_bulk_tensor_4d(stage.sf_a, &params.map_sf_a, 0, k_scale_tile, 0, batch, full,
                               policy);
}

// Runs on: one thread of kLoadWarp.   Waits: ab_empty[stage].   Arrives: ab_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void load_operands(const Params& params, SharedStorage<kCfg>& smem,
                                   const Tile& tile) {
  // Weights are read once, A by all CTAs.
  const ptx::CachePolicy keep = ptx::createpolicy_evict_last();
  const ptx::CachePolicy pass = ptx::createpolicy_evict_first();
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
    Stage<kCfg>& stage = smem.stages[ring.stage];
    ptx::Barrier* const full = &smem.ab_full[ring.stage];
    if (k_tile >= smem.kStages) {  // the stage was used in the round before, of the other parity
      ptx::mbarrier_wait_parity(&smem.ab_empty[ring.stage], ring.round_parity ^ 1);
    }
    ptx::mbarrier_arrive_expect_tx(full, sizeof(Stage<kCfg>));
    load_weights(params, stage, k_tile, tile, full, pass);
    load_weight_scales(params, stage, k_tile, tile, full, pass);
    load_rows_of_a(params, stage, k_tile, tile, full, keep);
  }
}

// A row of the MMA's scale tile.
template <Config kCfg>
DUALGEMM_DEVICE uint4 mixed_row(const uint32_t (&gate)[kScaleTileCols],
                                const uint32_t (&up)[kScaleTileCols], uint32_t first) {
  if constexpr (Budget<kCfg>::kGroups == 2) {
    const uint2 low = *reinterpret_cast<const uint2*>(&gate[first]);
    const uint2 high = *reinterpret_cast<const uint2*>(&up[first]);
    return make_uint4(low.x, low.y, high.x, high.y);
  } else {
    return make_uint4(gate[first], up[first], 0, 0);
  }
}

// By a warp: `first` is the word of the tile's first columns in the scale tiles of the weights.
template <Config kCfg>
DUALGEMM_DEVICE void mix_weights(Stage<kCfg>& stage, uint32_t first, uint32_t lane) {
#pragma unroll
  for (int step = 0; step < kMmaSteps; ++step) {
    *reinterpret_cast<uint4*>(stage.sf_weights[0][step][lane]) =
        mixed_row<kCfg>(stage.sf_weights[0][step][lane], stage.sf_weights[1][step][lane], first);
  }
}

// visit(index, parity of the round) of each of the ring's stages that are the warp's, in their
// order and in every round. A stage by one warp: shared by all of them each would wait for every
// stage, and fence and arrive there, for a quarter of this work. The ring's stages are dealt out
// and not the tiles of k, because of two rounds of a stage a warp that saw only the second could
// take the barrier's phase before the first for it.
template <int kStages, class Visit>
DUALGEMM_DEVICE void for_stages_of_warp(const Params& params, uint32_t warp, const Visit& visit) {
  uint32_t index = warp, round_begin = 0, round_parity = 0;
#pragma unroll 1
  while (round_begin + index < params.num_k_tiles) {
    visit(index, round_parity);
    index += kEpilogueWarps;
    if (index >= kStages) index = warp, round_begin += kStages, round_parity ^= 1;
  }
}

// Runs on: warps 0 .. kEpilogueWarps-1, each for its own stages of the ring.   Waits:
// ab_full[stage].   Arrives: sf_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void mix_scales(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile,
                                uint32_t warp) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t first = tile.n_begin % kScaleTileRows / kGroupRows;  // word
  for_stages_of_warp<smem.kStages>(params, warp, [&](uint32_t index, uint32_t parity) {
    ptx::mbarrier_wait_parity(&smem.ab_full[index], parity);
    mix_weights(smem.stages[index], first, lane);
    ptx::fence_proxy_async_shared();
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(&smem.sf_full[index]);
  });
}

// The operands of one stage as descriptors; a step along K = 64 is an addition to each.
struct StageDescriptors {
  uint64_t weights, a, sf_weights, sf_a;
};

template <Config kCfg>
DUALGEMM_DEVICE StageDescriptors describe(const Stage<kCfg>& stage) {
  const auto rows = [](const void* operand) {
    return smem_descriptor(ptx::shared_address(operand), kSwizzledRows128B, SmemSwizzle::k128B);
  };
  const auto scales = [](const void* tile) {
    return smem_descriptor(ptx::shared_address(tile), dualgemm::cuda::kScaleTileRows,
                           SmemSwizzle::kNone);
  };
  return {rows(stage.gate), rows(stage.a), scales(stage.sf_weights[0]), scales(stage.sf_a)};
}

// By one thread: a stage of the ring to the accumulator in column `acc`, which it begins if
// `is_first`.
template <Config kCfg>
DUALGEMM_DEVICE void multiply_stage(const SharedStorage<kCfg>& smem, uint32_t stage,
                                    uint32_t tmem_base, uint32_t acc, bool is_first) {
  using Cols = Budget<kCfg>;
  constexpr uint32_t kInstruction = nvfp4_instruction_descriptor(kMmaM, kCfg.tile_m);
  constexpr uint32_t kStepBytes = kMmaK / 2;
  const StageDescriptors from = describe(smem.stages[stage]);
#pragma unroll
  for (int step = 0; step < kMmaSteps; ++step) {
    const uint32_t sf_weights =
        tmem_base + Cols::kScaleCol + stage * Cols::kStageCols + step * Cols::kStepCols;
    const uint32_t sf_a = sf_weights + kScaleTileCols;
    const uint32_t scale = step * kScaleTileBytes, data = step * kStepBytes;
    ptx::tcgen05_cp_32x128b_warpx4(sf_weights, advance_descriptor(from.sf_weights, scale));
    ptx::tcgen05_cp_32x128b_warpx4(sf_a, advance_descriptor(from.sf_a, scale));
    ptx::tcgen05_mma_mxf4nvf4_block16_once(tmem_base + acc, advance_descriptor(from.weights, data),
                                           advance_descriptor(from.a, data), kInstruction,
                                           sf_weights, sf_a, !is_first || step != 0);
  }
}

// Runs on: one thread of kMmaWarp.   Waits: ab_full[stage], unpacked sf_full[stage].   Arrives:
// ab_empty[stage], acc_full.
template <Config kCfg>
DUALGEMM_DEVICE void issue_mma(const Params& params, SharedStorage<kCfg>& smem,
                               uint32_t tmem_base) {
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
    ptx::mbarrier_wait_parity(&smem.ab_full[ring.stage], ring.round_parity);
    if constexpr (!kCfg.prepared)
      ptx::mbarrier_wait_parity(&smem.sf_full[ring.stage], ring.round_parity);
    ptx::tcgen05_fence_after_thread_sync();
    multiply_stage(smem, ring.stage, tmem_base, Budget<kCfg>::kAccCol, k_tile == 0);
    if (k_tile + smem.kStages < params.num_k_tiles) ptx::tcgen05_commit(&smem.ab_empty[ring.stage]);
  }
  ptx::tcgen05_commit(&smem.acc_full[0]);
}

}  // namespace dualgemm::cuda::sm100a_skinny
