// The fused dual GEMM of fp16 or bf16 rows of A with NVFP4 weights on Blackwell SMs: few rows,
// bound by reading the weights once.
//
// Operands in swapped roles, as in sm100a_skinny: the MMA's A are weights, 64 rows of Gate and
// under them as many of Up; its B are rows of A. The tensor core has no MMA of 4-bit with 16-bit
// numbers: warps decode the weights, a thread a row, and write them into tensor memory, from where
// the MMA takes its A. A cluster of `split` CTAs computes a tile of D, each from its own tiles of
// k.
//
//   warp   role            does
//   0-7    decode_weights  codes and scales in shared memory -> fp16 or bf16 in TMEM; two groups of
//                          four warps, each half of every stage's k
//          leave_sums      TMEM -> shared memory
//          store_sums      sums of all CTAs of the cluster -> activation, D
//   8      load_operands   one thread: eight TMA loads a stage; four of prepared weights
//   9      issue_mma       allocates and frees TMEM; one thread: an MMA per K = 16
//   10     load_a          with prepared weights, one thread: four TMA loads a stage
//
//   shared memory, per stage: rows of Gate and of Up (128, 128) bytes, K-major, 128-byte swizzle;
//   A, four times (tile_m, 128) bytes, the same; 4 scale tiles of 512 bytes each for Gate and Up.
//   Behind the stages: barriers, the TMEM address. When all MMAs are complete the sums of both
//   products, (2, tile_m, 64) in FP32, take the stages' place.
//
//   MMA rows = TMEM lanes: 0 .. 63 Gate's, 64 .. 127 Up's.
//   TMEM columns: the accumulator 0 .. tile_m-1; decoded weights 64 .. 447: for each group of
//   decoders 3 slots of 64, K = 128.
//
//   barrier        count        arrives                       waits                   first wait
//   codes_full[s]  1 (+bytes)   load_operands, TMA hardware   decoders                phase 0
//   a_full[s]      1 (+bytes)   load_operands or load_a, TMA  issue_mma               phase 0
//   empty[s]       1            issue_mma (tcgen05.commit)    both that load    phase 0, in round 1
//   w_full[g][i]   4            warps of decoder group g      issue_mma               phase 0
//   w_empty[g][i]  1            issue_mma (tcgen05.commit)    decoder group g   phase 0, in round 1
//   acc_full       1            issue_mma (tcgen05.commit)    leave_sums              phase 0
//   cluster        all threads: the sums are there; then: they have been read, a CTA may leave
//   bar.sync 1     with one CTA in the place of the first: warps 0-7
//   The first round of stages and of slots needs no wait, and the last one no commit: each phase
//   that completes is waited for, so that nothing arrives at a CTA that has gone.
//
//   A stage is loaded again behind empty, whose commit comes after w_full of both groups: they
//   have read their codes and scales by then.
//
// The grid may begin while the one before it ends, and lets the next one do so from the beginning
// on: every thread that reads or writes global memory waits first (griddepcontrol.wait), but for
// prepared weights, which are complete: they are loaded and decoded as far as stages and slots go.
//
// Needs: sm_100a, sm_103a or sm_100f; PTX ISA 8.6; clusters of up to 8 CTAs; 227 KB of shared
// memory. Views and alignment: params.hpp.
#pragma once

#include <cstdint>

#include "cuda/device/descriptors.hpp"
#include "cuda/device/pipeline.cuh"
#include "cuda/kernels/blackwell/storage.cuh"
#include "cuda/kernels/blackwell/tmem.cuh"
#include "cuda/kernels/sm100a_w4a16/config.hpp"
#include "cuda/kernels/sm100a_w4a16/params.hpp"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/cp_async_bulk.cuh"
#include "cuda/ptx/grid.cuh"
#include "cuda/ptx/tcgen05.cuh"
#include "cuda/ptx/warp.cuh"

namespace dualgemm::cuda::sm100a_w4a16 {

// The scales of a weight's stage: [step along K = 64][row % 32][row / 32], prepared [row][step]; a
// word is four neighbours along k.
using StageScales = uint32_t[kScaleSteps * 32 * kScaleTileCols];

template <Config kCfg>
struct Stage {
  // Gate's 64 rows and behind them Up's, K-major.
  alignas(kSwizzleAlignment) uint8_t weights[kMmaM * kRowBytes];
  uint8_t a[kRowsOfA][kCfg.tile_m * kRowBytes];  // (tile_m, 64) numbers each, K-major
  StageScales scales[2];                         // Gate's, Up's
};

// What takes the stages' place: [product][row][column].
template <Config kCfg>
using Sums = float[2][kCfg.tile_m][kTileN];

template <Config kCfg>
struct SharedStorage {
  static constexpr int kStages = Budget<kCfg>::kStages;
  Stage<kCfg> stages[kStages];
  ptx::Barrier codes_full[kStages];
  ptx::Barrier a_full[kStages];
  ptx::Barrier empty[kStages];
  ptx::Barrier w_full[kDecoders][kSlots];
  ptx::Barrier w_empty[kDecoders][kSlots];
  ptx::Barrier acc_full[Budget<kCfg>::kAccs];
  uint32_t tmem_base;
};

template <Config kCfg>
struct StorageRules {
  static_assert(sizeof(Stage<kCfg>) == Budget<kCfg>::kStageBytes, "no padding inside a stage");
  static_assert(offsetof(Stage<kCfg>, a) % kSwizzleAlignment == 0, "operands start at atoms");
};

// What a CTA computes: a part of the sums of a tile of D.
struct Tile {
  uint32_t m_begin, n_begin, batch;
  uint32_t a_batch;               // the same, or that of contiguous groups
  uint32_t rank;                  // of the CTA in its cluster
  uint32_t k_begin, num_k_tiles;  // its tiles of k, at least one
};

template <Config kCfg>
DUALGEMM_DEVICE Tile tile_of_cta(const Params& params) {
  const uint32_t rank = ptx::cluster_cta_rank(), index = blockIdx.x / params.split;
  const uint32_t column = index / params.tiles_m, batch = column / params.tiles_n;
  const auto k_end = [&](uint64_t parts) {
    return static_cast<uint32_t>(params.num_k_tiles * parts / params.split);
  };
  const uint32_t k_begin = k_end(rank);
  return {(index - column * params.tiles_m) * kCfg.tile_m,
          (column - batch * params.tiles_n) * kTileN,
          batch,
          batch,
          rank,
          k_begin,
          k_end(rank + 1) - k_begin};
}

}  // namespace dualgemm::cuda::sm100a_w4a16

#include "cuda/kernels/sm100a_w4a16/epilogue.cuh"
#include "cuda/kernels/sm100a_w4a16/mainloop.cuh"

namespace dualgemm::cuda::sm100a_w4a16 {

// By one thread. The barriers' inits are not yet fenced.
template <Config kCfg>
DUALGEMM_DEVICE void prefetch_and_init(const Params& params, SharedStorage<kCfg>& smem) {
  for (const TensorMap* map :
       {&params.map_gate, &params.map_up, &params.map_a, &params.map_sf_gate, &params.map_sf_up}) {
    ptx::prefetch_tensormap(map);
  }
  for (int stage = 0; stage < smem.kStages; ++stage) {
    ptx::mbarrier_init(&smem.codes_full[stage], 1);
    ptx::mbarrier_init(&smem.a_full[stage], 1);
    ptx::mbarrier_init(&smem.empty[stage], 1);
  }
  for (int group = 0; group < kDecoders; ++group) {
    for (int slot = 0; slot < kSlots; ++slot) {
      ptx::mbarrier_init(&smem.w_full[group][slot], kGroupWarps);
      ptx::mbarrier_init(&smem.w_empty[group][slot], 1);
    }
  }
  for (ptx::Barrier& full : smem.acc_full) ptx::mbarrier_init(&full, 1);
}

// By all threads: barriers and TMEM are there for everyone afterwards.
template <Config kCfg>
DUALGEMM_DEVICE void prologue(const Params& params, SharedStorage<kCfg>& smem, uint32_t warp) {
  ptx::griddepcontrol_launch_dependents();
  if (warp == kLoadWarp && ptx::elect_sync()) {
    prefetch_and_init<kCfg>(params, smem);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  blackwell::allocate_tmem(&smem.tmem_base, warp == kMmaWarp);
}

// By the threads of a role that ends here, whole warps: every thread of a cluster meets at its
// barrier.
DUALGEMM_DEVICE void end_role(const Params& params) {
  if (params.split == 1) return;
  __syncwarp();
  ptx::cluster_sync();
}

template <Config kCfg>
requires(!kCfg.grouped) DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  static_assert(sizeof(StorageRules<kCfg>) > 0);
  extern __shared__ uint8_t dynamic_smem[];
  auto& smem = blackwell::storage_in<SharedStorage<kCfg>>(dynamic_smem);
  const uint32_t warp = ptx::warp_index();

  prologue(params, smem, warp);
  const uint32_t tmem_base = smem.tmem_base;
  const Tile tile = tile_of_cta<kCfg>(params);
  if (warp == kLoadWarp) {
    if (ptx::elect_sync()) load_operands(params, smem, tile);
    end_role(params);
  } else if (warp == kLoadAWarp) {
    if (params.prepared && ptx::elect_sync()) load_a(params, smem, tile);
    end_role(params);
  } else if (warp == kMmaWarp) {
    if (ptx::elect_sync()) issue_mma(smem, tile, tmem_base);
    end_role(params);
  } else {
    decode_weights(params, smem, tile, tmem_base, warp);
    ptx::griddepcontrol_wait();
    const ColumnFactors factors = begin_columns<kCfg>(params, tile, warp);
    leave_sums(params, smem, tile, tmem_base, warp);
    if (params.split > 1) {
      ptx::cluster_sync();
    } else {
      ptx::barrier_sync(kSumsBarrier, 32 * kWorkWarps);
    }
    store_sums(params, smem, tile, factors, warp);
  }
  if (params.split > 1) ptx::cluster_arrive();
  blackwell::free_tmem(tmem_base, warp == kMmaWarp);
  if (params.split > 1) ptx::cluster_wait();
}

}  // namespace dualgemm::cuda::sm100a_w4a16
