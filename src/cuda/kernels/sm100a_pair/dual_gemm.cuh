// D = act(alpha_gate * A * Gate^T) (*) (alpha_up * A * Up^T) in NVFP4 on pairs of Blackwell SMs.
//
// Two CTAs, a cluster, compute a tile of 256 x tile_n outputs from one pass over K: each holds 128
// rows of A and half of the tile's rows of Gate and Up in shared memory, and both accumulators of
// its 128 rows of D in tensor memory. One thread of the leader, the CTA of rank 0, issues the MMAs
// of both (cta_group::2).
//
//   warp      role           does
//   0-3, 6-17 epilogue       TMEM -> registers, activation, D; warp w has rows 32 * (w % 4) ..,
//                            four warps a quarter of the columns; before that, with prepared
//                            weights, arrange_scales, each warp in a stage of its own
//   4         load_operands  one thread: six TMA loads a stage, into its own CTA; load_prepared
//                            four
//   5         issue_mma      makes the barriers, allocates and frees TMEM; in the leader one
//                            thread: scales to the TMEM of both, two MMAs per K = 64
//
//   shared memory, per stage and CTA: A (128, 128), Gate (tile_n/2, 128), Up (tile_n/2, 128) bytes,
//   K-major, 128-byte swizzle; then 4 scale tiles of 512 bytes each for A (its own rows), Gate, Up
//   (all tile_n rows: the MMA reads them in both CTAs). 30 720 bytes for tile_n 64 (7 stages),
//   38 912 for 128 (5 stages). Behind the stages: barriers, the TMEM address.
//   Prepared weights: Gate and Up in turns of 8 rows, so that one box brings both; their scales
//   arrive row by row, 16 bytes for K = 256, and are arranged as scale tiles in the same place: a
//   tile may then begin at any column. Up to 64 columns Gate and Up share a scale tile. So are A's,
//   if they lie in rows (linear_a).
//
//   TMEM columns, in both      tile_n 64        tile_n 128
//   accumulator of Gate        0 .. 63          0 .. 127
//   accumulator of Up          64 .. 127        128 .. 255
//   scales, 48 per stage       128 .. 463       256 .. 495
//   of each of the 4 steps in a stage: A 4, Gate 4, Up 4; prepared, tile_n <= 64: A 4, both 4
//
//   barrier      of      count        arrives                         waits          first wait
//   ab_full[s]   leader  2 (+bytes)   load_operands and TMA of both   issue_mma      phase 0
//                        prepared: 4  and arrange_scales of both
//   sf_full[s]   each    1 (+bytes)   prepared: load_prepared,        arrange_scales phase 0
//                                     TMA of both (half each, multicast)
//   ab_empty[s]  each    1            issue_mma (tcgen05.commit)      load_operands  phase 0, in
//                                                                                    round 1
//   acc_gate     each    1            issue_mma (tcgen05.commit)      epilogue       phase 0
//   acc_up       each    1            the same
//   The commits arrive in both CTAs. The first round of stages needs no wait, and the last one no
//   commit: each phase of ab_empty that completes is waited for. In the last kTailStages stages the
//   MMAs of Gate come first, so that the epilogue activates while those of Up are at work.
//
//   sums_read    each    2 * 16, 12      every warp of both epilogues    kMmaWarp       phase 0
//
//   cluster barrier, all threads of both CTAs
//   1st  barriers are made: the other CTA's loads and commits may arrive
//   2nd  TMEM is there, and its address; load_operands arrives at once and waits when it is done
//   At the end there is none: a CTA stays until sums_read is complete, and then nothing is on its
//   way to it any more, and no TMEM is being read in either.
//
//   Scale columns of a stage are written again only behind ab_full of the next round: load_operands
//   arrived there after ab_empty, whose commit covers the MMAs that read them.
//
// Persistent, a pair does tile after tile (tiles.cuh), and the ring goes on from one to the next:
//   0-3, 8-11    epilogue, of the last tile while the next one is multiplied: all sums to
//                registers, 64 columns a warp, each product's as soon as it is complete; then the
//                activation
//   4, 5         as above
//   6, 7         prepared weights: arrange_all_scales, each some of the stages
//   gate_free    leader  2 * 8  every warp of both epilogues  issue_mma   passes; then the phase of
//   up_free      leader  2 * 8  the same, but for the last                the tile before
//                               tile, which is sums_read's
//   ab_empty and ab_full as above, the first wait for ab_empty passes. In the first stages, too,
//   the MMAs of Gate come first: Up's sums of the tile before are being read.
//
// The grid may begin while the one before it ends, and lets the next one do so from the beginning
// on: every thread that reads or writes global memory waits first (griddepcontrol.wait), but for
// prepared weights, which are complete.
//
// Needs: sm_100a, sm_103a or sm_100f; PTX ISA 8.6; clusters of two CTAs; 227 KB of shared memory.
// Views and alignment: blackwell/params.hpp, with 128 rows of A and tile_n/2 of Gate and Up a box.
// Prepared weights: map_gate is of their codes, map_sf_gate of their scales
// (blackwell/packed_weights.hpp), map_up and map_sf_up are of nothing.
#pragma once

#include <cstdint>

#include "cuda/device/pipeline.cuh"
#include "cuda/kernels/blackwell/packed_unit.hpp"
#include "cuda/kernels/blackwell/params.hpp"
#include "cuda/kernels/blackwell/storage.cuh"
#include "cuda/kernels/sm100a_pair/config.hpp"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/cp_async_bulk.cuh"
#include "cuda/ptx/cp_async_bulk_pair.cuh"
#include "cuda/ptx/grid.cuh"
#include "cuda/ptx/proxy_fence.cuh"
#include "cuda/ptx/tcgen05_pair.cuh"
#include "cuda/ptx/warp.cuh"

namespace dualgemm::cuda::sm100a_pair {

using blackwell::kUnitCols;
using blackwell::Params;
using blackwell::UnitCodes;
using blackwell::UnitScales;

template <Config kCfg, bool kPrepared = kCfg.prepared>
struct Stage {
  using B = Budget<kCfg>;
  alignas(kSwizzleAlignment) uint8_t a[kCtaRows * kRowBytes];  // (kCtaRows, kTileK/2), K-major
  uint8_t gate[B::kWeightRows * kRowBytes];                    // (tile_n/2, kTileK/2), K-major
  uint8_t up[B::kWeightRows * kRowBytes];
  uint8_t sf_a[B::kScaleBytesOfA];  // (kMmaSteps, 32, 16)
  uint8_t sf_gate[kMmaSteps * kScaleTileBytes];
  uint8_t sf_up[kMmaSteps * kScaleTileBytes];
};

template <Config kCfg>
struct Stage<kCfg, true> {
  using B = Budget<kCfg>;
  alignas(kSwizzleAlignment) uint8_t a[kCtaRows * kRowBytes];
  UnitCodes codes[B::kWeightRows / kUnitCols];
  uint8_t sf_a[kMmaSteps * kScaleTileBytes];
  union {
    UnitScales as_loaded[B::kTileN / kUnitCols];
    uint4 tiles[kMmaSteps][B::kWeightScaleTiles][kScaleTileBytes / sizeof(uint4)];
  } sf_weights;
};

template <Config kCfg>
struct SharedStorage {
  static constexpr int kStages = Budget<kCfg>::kStages;
  Stage<kCfg> stages[kStages];
  ptx::Barrier ab_full[kStages];  // used in the leader
  ptx::Barrier sf_full[kStages];  // used where scales are arranged
  ptx::Barrier ab_empty[kStages];
  ptx::Barrier acc_up, acc_gate, sums_read;
  ptx::Barrier gate_free, up_free;  // used in the leader, persistent
  uint32_t tmem_base;
};

template <Config kCfg>
struct StorageRules {
  static_assert(sizeof(Stage<kCfg>) == Budget<kCfg>::kStageBytes, "no padding inside a stage");
  static_assert(kCtaRows * kRowBytes % kSwizzleAlignment == 0 &&
                    Budget<kCfg>::kWeightRows * kRowBytes % kSwizzleAlignment == 0,
                "operands start at atoms, scales where TMA can put them");
};

}  // namespace dualgemm::cuda::sm100a_pair

#include "cuda/kernels/sm100a_pair/tiles.cuh"

#include "cuda/kernels/sm100a_pair/epilogue.cuh"
#include "cuda/kernels/sm100a_pair/load.cuh"
#include "cuda/kernels/sm100a_pair/multiply.cuh"
#include "cuda/kernels/sm100a_pair/scale_tiles.cuh"

namespace dualgemm::cuda::sm100a_pair {

// By one thread.
template <Config kCfg>
DUALGEMM_DEVICE void make_barriers(SharedStorage<kCfg>& smem) {
  for (int stage = 0; stage < smem.kStages; ++stage) {
    constexpr bool kArranges = Budget<kCfg>::kArrangesScales;
    ptx::mbarrier_init(&smem.ab_full[stage], kArranges ? 2 * kPairCtas : kPairCtas);
    if constexpr (kArranges) ptx::mbarrier_init(&smem.sf_full[stage], 1);
    ptx::mbarrier_init(&smem.ab_empty[stage], 1);
  }
  ptx::mbarrier_init(&smem.acc_gate, 1);
  ptx::mbarrier_init(&smem.acc_up, 1);
  for (ptx::Barrier* read : {&smem.sums_read, &smem.gate_free, &smem.up_free}) {
    if (kCfg.persistent || read == &smem.sums_read)
      ptx::mbarrier_init(read, kPairCtas * Budget<kCfg>::kEpilogueWarps);
  }
  ptx::fence_mbarrier_init();
}

// By one thread; performance only.
template <Config kCfg>
DUALGEMM_DEVICE void prefetch_maps(const Params& params) {
  for (const TensorMap* map :
       {&params.map_gate, &params.map_sf_gate, &params.map_a, &params.map_sf_a}) {
    ptx::prefetch_tensormap(map);
  }
  if constexpr (!kCfg.prepared) {
    ptx::prefetch_tensormap(&params.map_up);
    ptx::prefetch_tensormap(&params.map_sf_up);
  }
}

// By all threads. Behind it the barriers of both CTAs are there, and every thread has arrived at
// the cluster barrier that says the same of TMEM, and owes it a wait.
template <Config kCfg>
DUALGEMM_DEVICE void prologue(const Params& params, SharedStorage<kCfg>& smem, uint32_t warp) {
  ptx::griddepcontrol_launch_dependents();
  if (warp == kMmaWarp && ptx::elect_sync()) make_barriers(smem);
  if (warp == kLoadWarp && ptx::elect_sync()) prefetch_maps<kCfg>(params);
  __syncwarp();
  ptx::cluster_sync();
  if (warp == kMmaWarp) {
    ptx::tcgen05_alloc_pair(&smem.tmem_base, kTmemCols);
    ptx::tcgen05_relinquish_alloc_permit_pair();
  }
  ptx::tcgen05_fence_before_thread_sync();
  ptx::cluster_arrive();
}

// By kMmaWarp, the last warp of a CTA that is needed: behind the wait everything that arrives here
// from the other CTA has been waited for.
template <Config kCfg>
DUALGEMM_DEVICE void wait_until_sums_are_read(const SharedStorage<kCfg>& smem) {
  ptx::mbarrier_wait_parity_cluster(&smem.sums_read, 0);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
}
template <Config kCfg>
DUALGEMM_DEVICE void free_tmem(const SharedStorage<kCfg>& smem) {
  ptx::tcgen05_dealloc_pair(smem.tmem_base, kTmemCols);
}

template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  static_assert(sizeof(StorageRules<kCfg>) > 0);
  extern __shared__ uint8_t dynamic_smem[];
  auto& smem = blackwell::storage_in<SharedStorage<kCfg>>(dynamic_smem);
  const uint32_t warp = ptx::warp_index();

  prologue(params, smem, warp);
  using B = Budget<kCfg>;
  if constexpr (kCfg.prepared && !kCfg.persistent) {
    if (B::is_epilogue(warp)) arrange_scales(params, smem, B::epilogue_index(warp));
  }
  if (warp != kLoadWarp) {
    ptx::cluster_wait();
    ptx::tcgen05_fence_after_thread_sync();
  }
  if (B::is_epilogue(warp)) {
    if constexpr (kCfg.persistent) ptx::setmaxnreg_inc<B::kEpilogueRegisters>();
    epilogue(params, smem, smem.tmem_base, B::epilogue_index(warp));
    return;
  }
  if constexpr (kCfg.persistent) ptx::setmaxnreg_dec<B::kOtherRegisters>();
  if (warp == kLoadWarp) {
    if (ptx::elect_sync()) {
      if constexpr (kCfg.prepared) {
        load_prepared(params, smem);
      } else {
        load_operands(params, smem);
      }
    }
    __syncwarp();
    ptx::cluster_wait();
  } else if (warp == kMmaWarp) {
    if (ptx::cluster_cta_rank() == 0 && ptx::elect_sync()) {
      issue_mma(params.num_k_tiles, smem, smem.tmem_base, Turns<kCfg>(params));
    }
    wait_until_sums_are_read(smem);
    free_tmem(smem);
  } else if constexpr (kCfg.prepared && kCfg.persistent) {
    arrange_all_scales(params, smem, warp - kFirstArrangeWarp);
  }
}

}  // namespace dualgemm::cuda::sm100a_pair
