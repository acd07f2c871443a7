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

namespace dualgemm::cuda::sm90a_skinny {

// A block of k of one unit; [0] gate, [1] up.
struct UnitStorage {
  uint4 codes[2][kUnitCols * kBlockBytes / 16];  // rows of 128 bytes, see swizzled_chunk()
  uint32_t scales[2][kUnitCols * 4];             // 16 of each row
};

template <Config kCfg>
struct SharedStorage {
  UnitStorage units[kWarps][Budget<kCfg>::kStages][kCfg.units];
  float4 sums[kCfg.units][kWarps][32];  // mma's d of each lane
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

// The first copies.
template <Config kCfg>
DUALGEMM_DEVICE void fill(const Params& params,
                          UnitStorage (&units)[Budget<kCfg>::kStages][kCfg.units],
                          WeightCopier<kCfg>& ahead) {
#pragma unroll
  for (int i = 0; i < kUnitsAhead; ++i)
    ahead.copy_unit(params, units[i / kCfg.units][i % kCfg.units], i % kCfg.units);
}

template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  constexpr int kStages = Budget<kCfg>::kStages;
  static_assert(kDynamicSmemBytes<kCfg> <= kSmemBytes, "one CTA fits an SM");
  extern __shared__ __align__(16) uint8_t dynamic_smem[];
  auto& smem = *reinterpret_cast<SharedStorage<kCfg>*>(dynamic_smem);
  const uint32_t warp = threadIdx.x / 32;

  // There are no more CTAs than tiles.
  WeightCopier<kCfg> ahead(params, warp);
  Activations<kCfg.a_type> a;
  a.find(params, locate<kCfg>(params, blockIdx.x).batch, warp);
  // Nothing may be read before: the grid before this one may still be writing it.
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  // a before the weights, which would hold it up.
  a.load_both(params);
  fill<kCfg>(params, smem.units[warp], ahead);

  uint32_t stage = 0;
#pragma unroll 1
  for (uint32_t t = blockIdx.x; t < params.tiles; t += gridDim.x) {
    const Tile tile = locate<kCfg>(params, t);
    Accumulators<kCfg> acc{};
    if (t != blockIdx.x) {
      a.find(params, tile.batch, warp);
      a.load_both(params);
    }
#pragma unroll 1
    for (uint32_t block = warp; block < params.k_blocks; block += kWarps) {
      Steps steps[2];
      multiply_block<kCfg>(params, smem.units[warp][stage], a, steps, acc, ahead);
      if (++stage == kStages) stage = 0;
    }
    if (t != blockIdx.x) __syncthreads();  // the last tile's sums have been read
    finish_tile<kCfg>(params, smem, tile, warp, acc);
  }
}

}  // namespace dualgemm::cuda::sm90a_skinny
