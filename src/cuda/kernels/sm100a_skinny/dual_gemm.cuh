// The fused NVFP4 dual GEMM for few rows of A (up to 128) on one Blackwell SM per tile: bound by
// reading the weights once.
//
// Operands in swapped roles: the MMA's A are weights, tile_n rows of Gate and under them as many of
// Up; its B are the rows of A, so that few of them cost little. A CTA computes D's tile_n columns
// for all rows; one accumulator holds both products, a lane is a column of D.
//
//   warp   role           does
//   0-3    mix_scales     the scales of the MMA's 128 rows, from Gate's and Up's tiles
//          epilogue       TMEM -> registers; gate and up meet through shared memory; activation, D
//   4      load_operands  one thread: six TMA loads a stage
//   5      issue_mma      allocates and frees TMEM; one thread: scales to TMEM, one MMA per K = 64
//   with prepared weights arrange_units in the place of mix_scales, load_units (four loads) of
//   load_operands, and
//   6      load_a         one thread: two TMA loads a stage
//
//   shared memory, per stage: rows of Gate and of Up (2 * tile_n, 128) bytes, K-major, 128-byte
//   swizzle; A (tile_m, 128), the same; 4 scale tiles of 512 bytes each for Gate, Up, A (prepared:
//   for both weights, where their scales arrive as rows of 16 bytes, Gate's, then Up's). Behind the
//   stages: barriers, the TMEM address. When all MMAs are complete the epilogue takes the stages'
//   place for (tile_m, tile_n) numbers in FP32.
//
//   MMA rows = TMEM lanes      tile_n 64         tile_n 32
//   Gate                       0 .. 63           0 .. 31
//   Up                         64 .. 127         32 .. 63
//   unused                     -                 64 .. 127: A and scales, read as if weights
//
//   TMEM columns: the accumulator 0 .. tile_m-1; then 32 of scales per stage, for each of its 4
//   steps 4 of the weights, 4 of A.
//
// A scale tile has 128 rows: row r in word r / 32 of 16 bytes number r % 32. The MMA's rows are
// parts of two tiles, one or two words of each, and no copy to TMEM moves less than 16 bytes, nor
// can a box of TMA begin between two multiples of 16. So a warp puts the words together, in the
// place of Gate's tile:
//
//   tile_n 64, words first, first + 1 (0 or 2) of both:   gate, gate, up, up
//   tile_n 32, word first (0 .. 3) of both:               gate, up, 0, 0
//
//   barrier        count        arrives                       waits                   first wait
//   ab_full[s]     1 (+bytes)   load_operands, TMA hardware   mix_scales, issue_mma   phase 0
//   sf_full[s]     1            mix_scales                    issue_mma               phase 0
//   prepared:
//   sf_full[s]     1 (+bytes)   load_units, TMA hardware      arrange_units           phase 0
//   ab_full[s]     3 (+bytes)   load_units, load_a, TMA       issue_mma               phase 0
//                               hardware, arrange_units
//   ab_empty[s]    1            issue_mma (tcgen05.commit)    those that load   phase 0, in round 1
//   acc_full       1            issue_mma (tcgen05.commit)    epilogue                phase 0
//   bar.sync 1     the epilogue's warps that have lanes: gate and up are there for each other
//   The first round of stages needs no wait, and the last one no commit: each phase of ab_empty
//   that completes is waited for, so that nothing arrives at a CTA that has gone.
//
//   Scale columns of a stage are written again only behind ab_full of the next round: load_operands
//   arrived there after ab_empty, whose commit covers the MMAs that read them.
//
// The grid may begin while the one before it ends. Every thread waits (griddepcontrol.wait) before
// it reads or writes global memory, but for prepared weights, which are complete.
//
// Needs: sm_100a, sm_103a or sm_100f; PTX ISA 8.6; no cluster; 227 KB of shared memory. Views and
// alignment: params.hpp.
#pragma once

#include <cstdint>

#include "cuda/device/descriptors.hpp"
#include "cuda/device/pipeline.cuh"
#include "cuda/kernels/blackwell/storage.cuh"
#include "cuda/kernels/blackwell/tmem.cuh"
#include "cuda/kernels/sm100a_skinny/config.hpp"
#include "cuda/kernels/sm100a_skinny/params.hpp"
#include "cuda/ptx/cp_async_bulk.cuh"
#include "cuda/ptx/grid.cuh"
#include "cuda/ptx/tcgen05.cuh"
#include "cuda/ptx/warp.cuh"

namespace dualgemm::cuda::sm100a_skinny {

template <Config kCfg>
struct Stage {
  alignas(kSwizzleAlignment) uint8_t gate[kCfg.tile_n * kRowBytes];  // (tile_n, kTileK/2), K-major
  uint8_t up[kCfg.tile_n * kRowBytes];  // behind it: one operand of the MMA
  uint8_t a[kCfg.tile_m * kRowBytes];   // (tile_m, kTileK/2), K-major
  // [step along K = 64][row][word]: Gate's, which become those of the MMA's rows, and Up's.
  uint32_t sf_weights[Budget<kCfg>::kScaleTilesOfWeights][kMmaSteps][kGroupRows][kScaleTileCols];
  uint32_t sf_a[Budget<kCfg>::kScaleTilesOfA][kMmaSteps][kGroupRows][kScaleTileCols];
};

template <Config kCfg>
struct SharedStorage {
  static constexpr int kStages = Budget<kCfg>::kStages;
  Stage<kCfg> stages[kStages];
  ptx::Barrier ab_full[kStages];
  ptx::Barrier sf_full[kStages];
  ptx::Barrier ab_empty[kStages];
  ptx::Barrier acc_full[Budget<kCfg>::kAccs];
  uint32_t tmem_base;
};

template <Config kCfg>
struct StorageRules {
  static_assert(sizeof(Stage<kCfg>) == Budget<kCfg>::kStageBytes, "no padding inside a stage");
  static_assert(sizeof(Stage<kCfg>::sf_a[0]) == Budget<kCfg>::kScaleBytes);
  static_assert(offsetof(Stage<kCfg>, a) % kSwizzleAlignment == 0, "operands start at atoms");
};

using blackwell::dynamic_smem_bytes;
using blackwell::storage_in;

// The columns of D that a CTA computes.
struct Tile {
  uint32_t n_begin, batch;
};

template <Config kCfg>
DUALGEMM_DEVICE Tile tile_of_cta(const Params& params) {
  const uint32_t batch = blockIdx.x / params.tiles_n;
  return {(blockIdx.x - batch * params.tiles_n) * kCfg.tile_n, batch};
}

}  // namespace dualgemm::cuda::sm100a_skinny

#include "cuda/kernels/sm100a_skinny/epilogue.cuh"
#include "cuda/kernels/sm100a_skinny/mainloop.cuh"
#include "cuda/kernels/sm100a_skinny/prepared.cuh"

namespace dualgemm::cuda::sm100a_skinny {

// By one thread. The barriers' inits are not yet fenced.
template <Config kCfg>
DUALGEMM_DEVICE void prefetch_and_init(const Params& params, SharedStorage<kCfg>& smem) {
  for (const TensorMap* map : {&params.map_gate, &params.map_up, &params.map_a, &params.map_sf_gate,
                               &params.map_sf_up, &params.map_sf_a}) {
    ptx::prefetch_tensormap(map);
  }
  for (int stage = 0; stage < smem.kStages; ++stage) {
    ptx::mbarrier_init(&smem.ab_full[stage], kCfg.prepared ? 3 : 1);
    ptx::mbarrier_init(&smem.sf_full[stage], 1);
    ptx::mbarrier_init(&smem.ab_empty[stage], 1);
  }
  for (ptx::Barrier& full : smem.acc_full) ptx::mbarrier_init(&full, 1);
}

// By all threads: barriers and TMEM are there for everyone afterwards, and what the grid before
// this one has written. Nothing of the problem may be read earlier, the weights neither: that grid
// may be the one that writes them.
DUALGEMM_DEVICE void enter(uint32_t& tmem_base, uint32_t warp) {
  __syncwarp();
  blackwell::allocate_tmem(&tmem_base, warp == kMmaWarp);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
}

template <Config kCfg>
DUALGEMM_DEVICE void prologue(const Params& params, SharedStorage<kCfg>& smem, uint32_t warp) {
  if constexpr (kCfg.prepared) ptx::griddepcontrol_launch_dependents();
  if (warp == kLoadWarp && ptx::elect_sync()) {
    prefetch_and_init(params, smem);
    ptx::fence_mbarrier_init();
  }
  if constexpr (kCfg.prepared) {
    __syncwarp();
    blackwell::allocate_tmem(&smem.tmem_base, warp == kMmaWarp);
  } else {
    enter(smem.tmem_base, warp);
  }
}

template <Config kCfg>
requires(!kCfg.grouped) DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  static_assert(sizeof(StorageRules<kCfg>) > 0);
  extern __shared__ uint8_t dynamic_smem[];
  auto& smem = storage_in<SharedStorage<kCfg>>(dynamic_smem);
  const uint32_t warp = ptx::warp_index();

  prologue(params, smem, warp);
  const uint32_t tmem_base = smem.tmem_base;
  const Tile tile = tile_of_cta<kCfg>(params);
  if (warp == kLoadWarp) {
    if (ptx::elect_sync()) {
      if constexpr (kCfg.prepared) {
        load_units(params, smem, tile);
      } else {
        load_operands(params, smem, tile);
      }
    }
  } else if (warp == kMmaWarp) {
    if (ptx::elect_sync()) issue_mma(params, smem, tmem_base);
  } else if (warp < kEpilogueWarps) {
    if constexpr (kCfg.prepared) {
      arrange_units(params, smem, warp);
      ptx::griddepcontrol_wait();
    } else {
      mix_scales(params, smem, tile, warp);
    }
    if (warp < 2 * Budget<kCfg>::Turns::kProductWarps)
      epilogue(params, smem, tile, tmem_base, warp);
  } else if constexpr (kCfg.prepared) {
    if (ptx::elect_sync()) load_a(params, smem, tile);
  }
  blackwell::free_tmem(tmem_base, warp == kMmaWarp);
}

}  // namespace dualgemm::cuda::sm100a_skinny
