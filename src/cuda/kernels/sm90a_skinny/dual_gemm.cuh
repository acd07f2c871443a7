// The fused dual GEMM for few rows of a (up to 8) on Hopper: bound by reading the weights once.
//
// One launch, no workspace. A warp takes every 16th block of k of its CTA's tiles, from the first
// byte to the sum, so that warps have nothing to say to each other: it copies the codes and scales
// of its block to shared memory, ahead of their use, decodes them in registers, and mma.sync
// multiplies. Weights are the M operand (8 rows of gate, 8 of up: both sums of an output are in one
// thread), a is the N operand, read and decoded straight from memory: no two warps of a CTA need
// the same part of it. The 16 sums of an output meet in shared memory and are added in a fixed
// order.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm90a_skinny/config.hpp"
#include "cuda/kernels/sm90a_skinny/params.hpp"
#include "cuda/ptx/cp_async.cuh"
#include "cuda/ptx/grid.cuh"
#include "cuda/ptx/mbarrier.cuh"

namespace dualgemm::cuda::sm90a_skinny {

// A block of k of one unit; [0] gate, [1] up.
struct UnitStorage {
  uint4 codes[2][kUnitCols * kBlockBytes / 16];  // rows of 128 bytes, see swizzled_chunk()
  uint32_t scales[2][32];                        // of each lane
};

template <Config kCfg>
struct SharedStorage {
  UnitStorage units[kWarps][Budget<kCfg>::kStages][kCfg.units];
  float4 sums[kCfg.units][kWarps][32];        // mma's d of each lane
  ptx::Barrier first_have_come[kFirstWarps];  // of warp i; warp i + kFirstWarps waits
};

template <Config kCfg>
inline constexpr int kDynamicSmemBytes = sizeof(SharedStorage<kCfg>);

// Where a tile lies.
struct Tile {
  uint32_t n_begin, batch;
};

template <Config kCfg>
DUALGEMM_DEVICE Tile locate(const Params& params, uint32_t tile) {
  const uint32_t batch = tile / params.tiles_n;
  return {(tile - batch * params.tiles_n) * cols_of(kCfg), batch};
}

// Sums of one warp: [unit][mma's d].
template <Config kCfg>
using Accumulators = float[kCfg.units][4];

}  // namespace dualgemm::cuda::sm90a_skinny

#include "cuda/kernels/sm90a_skinny/copy_weights.cuh"
#include "cuda/kernels/sm90a_skinny/epilogue.cuh"
#include "cuda/kernels/sm90a_skinny/multiply.cuh"

namespace dualgemm::cuda::sm90a_skinny {

// The first copies. All at once they would queue in front of the memory, and none would be complete
// for 3 to 4 us: half of the warps begin when the first copies of the others have come.
template <Config kCfg>
DUALGEMM_DEVICE void fill(const Params& params, SharedStorage<kCfg>& smem, uint32_t warp,
                          WeightCopier<kCfg>& ahead) {
  constexpr int kGroups = Budget<kCfg>::kStages * kCfg.units;
  ptx::Barrier* const first_have_come = &smem.first_have_come[warp % kFirstWarps];
  if (warp >= kFirstWarps) ptx::mbarrier_wait_parity(first_have_come, 0);
#pragma unroll
  for (int i = 0; i < Budget<kCfg>::kStages; ++i) {
#pragma unroll
    for (int unit = 0; unit < kCfg.units; ++unit)
      ahead.copy_unit(params, smem.units[warp][i][unit], unit);
    ahead.advance(params);
  }
  if (warp >= kFirstWarps) return;
  ptx::cp_async_wait_group<kGroups - 1>();
  __syncwarp();
  if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(first_have_come);
}

template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  constexpr int kStages = Budget<kCfg>::kStages;
  static_assert(kDynamicSmemBytes<kCfg> <= kSmemBytes, "one CTA fits an SM");
  extern __shared__ __align__(16) uint8_t dynamic_smem[];
  auto& smem = *reinterpret_cast<SharedStorage<kCfg>*>(dynamic_smem);
  const uint32_t warp = threadIdx.x / 32;

  if (threadIdx.x == 0) {
    for (ptx::Barrier& barrier : smem.first_have_come) ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  WeightCopier<kCfg> ahead(params, warp);
  // Nothing may be read before: the grid before this one may still be writing it.
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  // a before the weights, which would hold it up.
  Activations<kCfg.a_type> a;
  if (blockIdx.x < params.tiles) a.begin(params, locate<kCfg>(params, blockIdx.x), warp);
  fill<kCfg>(params, smem, warp, ahead);

  uint32_t stage = 0;
#pragma unroll 1
  for (uint32_t t = blockIdx.x; t < params.tiles; t += gridDim.x) {
    const Tile tile = locate<kCfg>(params, t);
    Accumulators<kCfg> acc{};
    if (t != blockIdx.x) a.begin(params, tile, warp);
#pragma unroll 1
    for (uint32_t block = warp; block < params.k_blocks; block += kWarps) {
      multiply_half<kCfg, 0>(params, smem.units[warp][stage], block, a, acc, ahead);
      multiply_half<kCfg, 1>(params, smem.units[warp][stage], block, a, acc, ahead);
      ahead.advance(params);
      if (++stage == kStages) stage = 0;
    }
    finish_tile<kCfg>(params, smem, tile, warp, acc);
  }
}

}  // namespace dualgemm::cuda::sm90a_skinny
