// The role that issues what the tensor core does. Part of dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/kernels/blackwell/stage_descriptors.cuh"

namespace dualgemm::cuda::sm100a_pair {

template <Config kCfg>
DUALGEMM_DEVICE blackwell::StageDescriptors describe_stage(const Stage<kCfg>& stage) {
  if constexpr (kCfg.prepared) {
    const auto rows = [](const void* operand, SmemStrides strides) {
      return smem_descriptor(ptx::shared_address(operand), strides, SmemSwizzle::k128B);
    };
    const auto scales = [](const void* tile) {
      return smem_descriptor(ptx::shared_address(tile), dualgemm::cuda::kScaleTileRows,
                             SmemSwizzle::kNone);
    };
    // Atoms of Gate and of Up follow each other in turns.
    constexpr SmemStrides kUnits{kSwizzledRows128B.leading_bytes, sizeof(UnitCodes)};
    constexpr int kLastTile = Budget<kCfg>::kWeightScaleTiles - 1;
    return {rows(stage.a, kSwizzledRows128B),     rows(stage.codes[0].rows[0], kUnits),
            rows(stage.codes[0].rows[1], kUnits), scales(stage.sf_a),
            scales(stage.sf_weights.tiles[0][0]), scales(stage.sf_weights.tiles[0][kLastTile])};
  } else {
    return blackwell::describe(stage);
  }
}

// Until the stage is there; where scales are arranged, warps of both CTAs have written in it.
template <Config kCfg>
DUALGEMM_DEVICE void wait_for_stage(const ptx::Barrier* full, uint32_t parity) {
  if constexpr (Budget<kCfg>::kArrangesScales) {
    ptx::mbarrier_wait_parity_cluster(full, parity);
  } else {
    ptx::mbarrier_wait_parity(full, parity);
  }
}

// One stage in shared memory and the TMEM columns of its scales, as the MMAs address them.
template <Config kCfg>
class StageMmas {
 public:
  DUALGEMM_DEVICE StageMmas(const Stage<kCfg>& stage, uint32_t tmem_base, uint32_t index,
                            uint32_t half_tile_col)
      : from_(describe_stage(stage)),
        tmem_base_(tmem_base),
        scale_col_(tmem_base + B::kScaleCol + index * B::kStageCols),
        half_tile_col_(half_tile_col) {}

  DUALGEMM_DEVICE void copy_scales(int step) const {
    const uint32_t scale = step * kScaleTileBytes;
    const uint32_t weight_scale = kCfg.prepared ? B::kWeightScaleTiles * scale : scale;
    const uint32_t sf_a = sf_a_col(step);
    ptx::tcgen05_cp_32x128b_warpx4_pair(sf_a, advance_descriptor(from_.sf_a, scale));
    ptx::tcgen05_cp_32x128b_warpx4_pair(sf_a + kScaleTileCols,
                                        advance_descriptor(from_.sf_gate, weight_scale));
    if constexpr (!B::kScalesShareTile) {
      ptx::tcgen05_cp_32x128b_warpx4_pair(sf_a + kScaleTileCols + B::kUpScaleCol,
                                          advance_descriptor(from_.sf_up, weight_scale));
    }
  }

  template <ptx::CollectorA kCollector>
  DUALGEMM_DEVICE void multiply_gate(int step, uint32_t accumulate) const {
    multiply<kCollector>(step, B::kAccGateCol, from_.gate, 0, accumulate);
  }
  template <ptx::CollectorA kCollector>
  DUALGEMM_DEVICE void multiply_up(int step, uint32_t accumulate) const {
    multiply<kCollector>(step, B::kAccUpCol, from_.up, B::kUpScaleCol, accumulate);
  }

 private:
  using B = Budget<kCfg>;
  static constexpr uint32_t kInstruction = nvfp4_instruction_descriptor(kTileM, kCfg.tile_n);

  DUALGEMM_DEVICE uint32_t sf_a_col(int step) const { return scale_col_ + step * B::kStepCols; }

  template <ptx::CollectorA kCollector>
  DUALGEMM_DEVICE void multiply(int step, uint32_t acc_col, uint64_t weights, uint32_t weight_scale,
                                uint32_t accumulate) const {
    constexpr uint32_t kStepBytes = kMmaK / 2;
    const uint32_t data = step * kStepBytes;
    ptx::tcgen05_mma_mxf4nvf4_block16_pair<kCollector>(
        tmem_base_ + acc_col, advance_descriptor(from_.a, data), advance_descriptor(weights, data),
        kInstruction, sf_a_col(step),
        sf_a_col(step) + kScaleTileCols + weight_scale + half_tile_col_, accumulate);
  }

  blackwell::StageDescriptors from_;
  uint32_t tmem_base_, scale_col_, half_tile_col_;
};

// The MMAs of one thread, stage after stage of the ring.
template <Config kCfg>
class Multiplier {
 public:
  DUALGEMM_DEVICE Multiplier(SharedStorage<kCfg>& smem, uint32_t tmem_base)
      : smem_(smem), tmem_base_(tmem_base) {}

  // Call before a tile. `fills`: how many stages are filled from the tile's first to the last
  // tile's last.
  DUALGEMM_DEVICE void begin(uint32_t half_tile_col, uint32_t fills) {
    half_tile_col_ = half_tile_col;
    fills_ = fills;
  }

  // Gate and Up of each step in turns, which read A once.
  DUALGEMM_DEVICE void in_turns(uint32_t k_begin, uint32_t k_end) {
#pragma unroll 1
    for (uint32_t k_tile = k_begin; k_tile < k_end; ++k_tile, ring_.advance()) {
      wait(ring_);
      const StageMmas<kCfg> mmas = mmas_of(ring_.stage);
#pragma unroll
      for (int step = 0; step < kMmaSteps; ++step) {
        mmas.copy_scales(step);
        mmas.template multiply_gate<Collector::kFill>(step, k_tile != 0 || step != 0);
        mmas.template multiply_up<Collector::kLastUse>(step, k_tile != 0 || step != 0);
      }
      empty(ring_.stage, k_tile);
    }
  }

  // All of Gate, then all of Up: stages stay as they are until then.
  template <class Between>
  DUALGEMM_DEVICE void gate_then_up(uint32_t k_begin, uint32_t k_end, const Between& between) {
    Ring again = ring_;
#pragma unroll 1
    for (uint32_t k_tile = k_begin; k_tile < k_end; ++k_tile, ring_.advance()) {
      wait(ring_);
      const StageMmas<kCfg> mmas = mmas_of(ring_.stage);
#pragma unroll
      for (int step = 0; step < kMmaSteps; ++step) {
        mmas.copy_scales(step);
        mmas.template multiply_gate<Collector::kDiscard>(step, k_tile != 0 || step != 0);
      }
    }
    between();
#pragma unroll 1
    for (uint32_t k_tile = k_begin; k_tile < k_end; ++k_tile, again.advance()) {
      const StageMmas<kCfg> mmas = mmas_of(again.stage);
#pragma unroll
      for (int step = 0; step < kMmaSteps; ++step)
        mmas.template multiply_up<Collector::kDiscard>(step, k_tile != 0 || step != 0);
      if constexpr (kCfg.persistent) empty(again.stage, k_tile);
    }
  }

 private:
  using Collector = ptx::CollectorA;
  using Ring = RingPosition<SharedStorage<kCfg>::kStages>;

  DUALGEMM_DEVICE void wait(const Ring& at) const {
    wait_for_stage<kCfg>(&smem_.ab_full[at.stage], at.round_parity);
    ptx::tcgen05_fence_after_thread_sync();
  }
  DUALGEMM_DEVICE StageMmas<kCfg> mmas_of(uint32_t stage) const {
    return StageMmas<kCfg>(smem_.stages[stage], tmem_base_, stage, half_tile_col_);
  }
  // If the stage is filled again: each phase that completes is waited for.
  DUALGEMM_DEVICE void empty(uint32_t stage, uint32_t k_tile) const {
    if (k_tile + smem_.kStages < fills_)
      ptx::tcgen05_commit_pair(&smem_.ab_empty[stage], kBothCtas);
  }

  SharedStorage<kCfg>& smem_;
  Ring ring_;
  uint32_t tmem_base_, half_tile_col_ = 0, fills_ = 0;
};

// Until warps of both CTAs have read the accumulator of the turn before; in the first one none has,
// and the barrier lets that parity pass.
DUALGEMM_DEVICE void wait_until_free(const ptx::Barrier* free, uint32_t parity) {
  ptx::mbarrier_wait_parity_cluster(free, parity ^ 1);
  ptx::tcgen05_fence_after_thread_sync();
}

// Where the scales of a tile's columns begin. Unpacked, a tile of 64 columns uses one half of its
// 128-row scale tile: two of the four TMEM columns.
template <Config kCfg, class TurnsOfPair>
DUALGEMM_DEVICE uint32_t half_tile_col(const TurnsOfPair& turns) {
  if constexpr (kCfg.prepared || kCfg.tile_n == kScaleTileRows) {
    return 0;
  } else {
    return turns.tile().n_begin % kScaleTileRows / 32;
  }
}

// Runs on: one thread of the leader's kMmaWarp.   Waits: ab_full[stage]; persistent: gate_free,
// up_free.   Arrives: ab_empty[stage], acc_gate and acc_up of both CTAs.
template <Config kCfg, class TurnsOfPair>
DUALGEMM_DEVICE void issue_mma(uint32_t k_end, SharedStorage<kCfg>& smem, uint32_t tmem_base,
                               TurnsOfPair turns) {
  using B = Budget<kCfg>;
  const uint32_t head_end = min(k_end, B::kHeadStages);
  const uint32_t tail_begin = max(head_end, k_end - min(k_end, B::kTailStages));
  Multiplier<kCfg> multiplier(smem, tmem_base);
#pragma unroll 1
  for (;; turns.advance()) {
    multiplier.begin(half_tile_col<kCfg>(turns), k_end + turns.stages_behind());
    if constexpr (kCfg.persistent) {
      wait_until_free(&smem.gate_free, turns.parity());
      multiplier.gate_then_up(0, head_end, [&] { wait_until_free(&smem.up_free, turns.parity()); });
    }
    multiplier.in_turns(head_end, tail_begin);
    // First all of Gate, for the epilogue to begin with, then Up.
    multiplier.gate_then_up(tail_begin, k_end,
                            [&] { ptx::tcgen05_commit_pair(&smem.acc_gate, kBothCtas); });
    ptx::tcgen05_commit_pair(&smem.acc_up, kBothCtas);
    if (turns.is_last()) return;
  }
}

}  // namespace dualgemm::cuda::sm100a_pair
