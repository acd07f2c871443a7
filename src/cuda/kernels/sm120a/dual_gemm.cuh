// The dual GEMM of NVFP4 for sm_120a and sm_121a: block-scaled mma.sync, operands through a ring in
// shared memory that cp.async fills, both sums of an output in one thread. One kernel for few rows,
// bound by reading weights, and for many.
#pragma once

#include <cstdint>

#include "cuda/kernels/common/finish_pairs.cuh"
#include "cuda/kernels/sm120a/multiply.cuh"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda::sm120a {

// Items of a warp, [item][float][lane]: groups `first` and those behind it.
__device__ __noinline__ void finish_groups(const Params& params, Place place,
                                           float (*items)[kItemFloats][32], uint32_t first,
                                           uint32_t count) {
  const uint32_t col = place.first_col + place.warp_n * kWarpCols + place.row;
#pragma unroll 1
  for (uint32_t i = 0; i < count; ++i) finish_both<4, 2>(params, place, first + i, col, items[i]);
}

template <Config kCfg>
DUALGEMM_DEVICE void finish(const Params& params, const Place& place, const Sums<kCfg>& sums,
                            uint8_t* smem) {
  constexpr int kRound = round_groups_of(kCfg);
  const uint32_t lane = threadIdx.x % 32, warp = place.warp_m * kWarpsN + place.warp_n;
  auto* const items = reinterpret_cast<float(*)[kItemFloats][32]>(smem) + warp * kRound;
#pragma unroll
  for (int first = 0; first < kCfg.groups; first += kRound) {
    __syncwarp();  // the items before have been read
#pragma unroll
    for (int i = 0; i < kRound; ++i) {
#pragma unroll
      for (int j = 0; j < kItemFloats; ++j) items[i][j][lane] = sums[j / 4][first + i][j % 4];
    }
    finish_groups(params, place, items, first, kRound);
  }
}

// A CTA has one tile; with groups there may be fewer tiles than CTAs, or, where rows name their
// experts, more. One copy of the instructions for both.
template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  extern __shared__ __align__(128) uint8_t smem[];
  const bool grouped = params.groups.table != nullptr;
  const Ring<kCfg> ring{smem};
  ring.make(params.stages);
  __syncwarp();
  __syncthreads();
  RingPlace place_in_ring;
#pragma unroll 1
  for (uint32_t tile = blockIdx.x;; tile += gridDim.x) {
    if (grouped && tile / params.tiles_n >= number_of_tiles(params.groups)) return;
    Sums<kCfg> sums{};
    multiply<kCfg>(params, place_of_thread<kCfg>(params, tile), ring, place_in_ring, sums);
    __syncwarp();
    __syncthreads();  // the stages have been read: sums take their place
    // Found anew, so that the loop need not keep it in registers.
    finish<kCfg>(params, place_of_thread<kCfg>(params, tile), sums, smem + kBarrierBytes);
    if (!grouped) return;
    __syncwarp();
    __syncthreads();  // sums have been read
  }
}

}  // namespace dualgemm::cuda::sm120a
