// The dual GEMM of NVFP4 for sm_120a and sm_121a: block-scaled mma.sync, operands through a ring in
// shared memory that cp.async fills, both sums of an output in one thread. One kernel for few rows,
// bound by reading weights, and for many.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm120a/finish_rows.cuh"

namespace dualgemm::cuda::sm120a {

// Tiles in turn: of a grid that has a CTA for each the only one; with groups there may be fewer
// tiles than CTAs, or, where rows name their experts, more.
DUALGEMM_DEVICE bool has_tile(const Params& params, uint32_t tile) {
  return params.groups.table == nullptr ? tile < params.tiles
                                        : tile / params.tiles_n < number_of_tiles(params.groups);
}

template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  extern __shared__ __align__(128) uint8_t smem[];
  const Ring<kCfg> ring{smem};
  ring.make(params.stages);
  __syncwarp();
  __syncthreads();
  RingPlace place_in_ring;
  uint32_t tile = blockIdx.x;
  if (!has_tile(params, tile)) return;
#pragma unroll 1
  for (;;) {
    Sums<kCfg> sums{};
    multiply<kCfg>(params, place_of_thread<kCfg>(params, tile), ring, place_in_ring, sums);
    __syncwarp();
    __syncthreads();  // the stages have been read: sums take their place
    // Found anew, so that the loop need not keep it in registers.
    finish<kCfg>(params, place_of_thread<kCfg>(params, tile), sums, smem + kBarrierBytes);
    tile += gridDim.x;
    if (!has_tile(params, tile)) return;
    __syncwarp();
    __syncthreads();  // sums have been read
  }
}

}  // namespace dualgemm::cuda::sm120a
