// D = act(alpha_gate * A * Gate^T) (*) (alpha_up * A * Up^T) in NVFP4 on one Blackwell SM per tile.
//
// One CTA computes a tile of 128 x tile_n outputs from one pass over K. Both accumulators stay in
// tensor memory; D is the only thing written.
//
//   warp   role           does
//   0-3    epilogue       TMEM -> registers, activation, D; warp w owns rows 32w .. 32w+31
//   4      load_operands  one thread: six TMA loads a stage
//   5      issue_mma      allocates and frees TMEM; one thread: scales to TMEM, two MMAs
//                         per K = 64
//
//   shared memory, per stage: A (128, 128), Gate (tile_n, 128), Up (tile_n, 128) bytes, K-major,
//   128-byte swizzle; then 4 scale tiles of 512 bytes each for A, Gate, Up. 38 912 bytes for
//   tile_n 64 (5 stages), 55 296 for 128 (4 stages). Behind the stages: barriers, the TMEM address.
//
//   TMEM columns               tile_n 64        tile_n 128
//   accumulator of Gate        0 .. 63          0 .. 127
//   accumulator of Up          64 .. 127        128 .. 255
//   scales, 48 per stage       128 .. 367       256 .. 447
//   of each of the 4 steps in a stage: A 4, Gate 4, Up 4
//
//   barrier        count        arrives                       waits           first wait
//   ab_full[s]     1 (+bytes)   load_operands, TMA hardware   issue_mma       phase 0
//   ab_empty[s]    1            issue_mma (tcgen05.commit)    load_operands   phase 0, in round 1
//   acc_full       1            issue_mma (tcgen05.commit)    epilogue        phase 0
//   The first round of stages needs no wait, and the last one no commit: each phase of ab_empty
//   that completes is waited for, so that nothing arrives at a CTA that has gone.
//
//   Scale columns of a stage are written again only behind ab_full of the next round: load_operands
//   arrived there after ab_empty, whose commit covers the MMAs that read them.
//
// Needs: sm_100a, sm_103a or sm_100f; PTX ISA 8.6; no cluster; 227 KB of shared memory. Views and
// alignment: blackwell/params.hpp.
#pragma once

#include <cstdint>

#include "cuda/device/pipeline.cuh"
#include "cuda/kernels/blackwell/params.hpp"
#include "cuda/kernels/blackwell/storage.cuh"
#include "cuda/kernels/blackwell/tmem.cuh"
#include "cuda/kernels/sm100a/config.hpp"
#include "cuda/ptx/cp_async_bulk.cuh"
#include "cuda/ptx/tcgen05.cuh"
#include "cuda/ptx/warp.cuh"

namespace dualgemm::cuda::sm100a {

using blackwell::Params;

template <Config kCfg>
struct Stage {
  alignas(kSwizzleAlignment) uint8_t a[kTileM * kRowBytes];  // (kTileM, kTileK/2), K-major
  uint8_t gate[kCfg.tile_n * kRowBytes];                     // (tile_n, kTileK/2), K-major
  uint8_t up[kCfg.tile_n * kRowBytes];
  uint8_t sf_a[kMmaSteps * kScaleTileBytes];  // (kMmaSteps, 32, 16)
  uint8_t sf_gate[kMmaSteps * kScaleTileBytes];
  uint8_t sf_up[kMmaSteps * kScaleTileBytes];
};

template <Config kCfg>
struct SharedStorage {
  static constexpr int kStages = Budget<kCfg>::kStages;
  Stage<kCfg> stages[kStages];
  ptx::Barrier ab_full[kStages];
  ptx::Barrier ab_empty[kStages];
  ptx::Barrier acc_full;
  uint32_t tmem_base;
};

template <Config kCfg>
struct StorageRules {
  static_assert(sizeof(Stage<kCfg>) == Budget<kCfg>::kStageBytes, "no padding inside a stage");
  static_assert(offsetof(Stage<kCfg>, gate) % kSwizzleAlignment == 0, "operands start at atoms");
  static_assert(offsetof(Stage<kCfg>, up) % kSwizzleAlignment == 0, "operands start at atoms");
  static_assert(offsetof(Stage<kCfg>, sf_a) % 128 == 0, "TMA destinations: 128 bytes");
};

// The tile of D that a CTA computes.
struct Tile {
  uint32_t m_begin, n_begin, batch;
};

template <Config kCfg>
DUALGEMM_DEVICE Tile tile_of_cta(const Params& params) {
  const uint32_t column = blockIdx.x / params.tiles_m;
  const uint32_t batch = column / params.tiles_n;
  return {(blockIdx.x - column * params.tiles_m) * kTileM,
          (column - batch * params.tiles_n) * kCfg.tile_n, batch};
}

}  // namespace dualgemm::cuda::sm100a

#include "cuda/kernels/sm100a/roles.cuh"

namespace dualgemm::cuda::sm100a {

// By all threads: barriers and TMEM are there for everyone afterwards.
template <Config kCfg>
DUALGEMM_DEVICE void prologue(const Params& params, SharedStorage<kCfg>& smem, uint32_t warp) {
  if (warp == kLoadWarp && ptx::elect_sync()) {
    for (const TensorMap* map : {&params.map_a, &params.map_gate, &params.map_up, &params.map_sf_a,
                                 &params.map_sf_gate, &params.map_sf_up}) {
      ptx::prefetch_tensormap(map);
    }
    for (int stage = 0; stage < smem.kStages; ++stage) {
      ptx::mbarrier_init(&smem.ab_full[stage], 1);
      ptx::mbarrier_init(&smem.ab_empty[stage], 1);
    }
    ptx::mbarrier_init(&smem.acc_full, 1);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  blackwell::allocate_tmem(&smem.tmem_base, warp == kMmaWarp);
}

template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  static_assert(sizeof(StorageRules<kCfg>) > 0);
  extern __shared__ uint8_t dynamic_smem[];
  auto& smem = blackwell::storage_in<SharedStorage<kCfg>>(dynamic_smem);
  const uint32_t warp = ptx::warp_index();

  prologue(params, smem, warp);
  const uint32_t tmem_base = smem.tmem_base;
  const Tile tile = tile_of_cta<kCfg>(params);
  if (warp == kLoadWarp) {
    if (ptx::elect_sync()) load_operands(params, smem, tile);
  } else if (warp == kMmaWarp) {
    if (ptx::elect_sync()) issue_mma(params, smem, tile, tmem_base);
  } else {
    epilogue(params, smem, tile, tmem_base, warp);
  }
  blackwell::free_tmem(tmem_base, warp == kMmaWarp);
}

}  // namespace dualgemm::cuda::sm100a
