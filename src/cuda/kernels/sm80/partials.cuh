// Sums of CTAs that divide the k of a tile, in the workspace. finish_partials.cu adds them.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/place.cuh"
#include "cuda/kernels/sm80/sums.cuh"

namespace dualgemm::cuda::sm80 {

// Item `item` of a warp's sums over part `split` of k: [half of an item][lane][4 floats]. items: of
// a warp.
DUALGEMM_DEVICE float4* partial_item(const Params& params, uint32_t warps, uint32_t items,
                                     uint32_t split, uint32_t tile, uint32_t warp, uint32_t item) {
  const uint64_t of_tile = (static_cast<uint64_t>(split) * params.tiles + tile) * warps + warp;
  return reinterpret_cast<float4*>(params.partials) + (of_tile * items + item) * kItemFloats * 8;
}

// Whether rows of a group of the warp's exist: where they do not, nothing is stored or read.
DUALGEMM_DEVICE bool group_exists(const Place& place, uint32_t group) {
  return place.m_begin + group * kGroupRows < place.m_end;
}

// unit: what the sums are multiplied with, a power of two.
template <Config kCfg>
DUALGEMM_DEVICE void store_partials(const Params& params, const Place& place, uint32_t split,
                                    uint32_t tile, float unit, const Sums<kCfg>& sums) {
  const uint32_t thread = ptx::thread_index_anew(), warp = thread / 32, lane = thread % 32;
#pragma unroll
  for (int item = 0; item < items_of(kCfg); ++item) {
    if (!group_exists(place, item % kCfg.groups)) continue;
    float4* const to =
        partial_item(params, warps_of(kCfg), items_of(kCfg), split, tile, warp, item) + lane;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      to[32 * half] = make_float4(
          unit * sums.of_item(item, 4 * half), unit * sums.of_item(item, 4 * half + 1),
          unit * sums.of_item(item, 4 * half + 2), unit * sums.of_item(item, 4 * half + 3));
    }
  }
}

}  // namespace dualgemm::cuda::sm80
