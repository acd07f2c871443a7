#include "cuda/kernels/sm80/finish_partials.hpp"

#include "cuda/kernels/sm80/finish.cuh"
#include "cuda/kernels/sm80/partials.cuh"

namespace dualgemm::cuda::sm80 {
namespace {

constexpr uint32_t kThreads = 256, kWarps = kThreads / 32;

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_sm80_finish(const __grid_constant__ FinishParams finish) {
  __shared__ float items[kWarps][kItemFloats][32];
  const Params& params = finish.of_tiles;
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t warps = finish.shape.warps_n;
  const uint64_t index = static_cast<uint64_t>(blockIdx.x) * kWarps + warp;
  const auto of_warp = static_cast<uint32_t>(index / finish.items);
  const uint32_t item = static_cast<uint32_t>(index - uint64_t{of_warp} * finish.items);
  const uint32_t tile = of_warp / warps, warp_of_tile = of_warp - tile * warps;
  if (tile >= params.tiles) return;
  const Place place = place_of(params, finish.shape, tile, warp_of_tile * 32 + lane);
  const uint32_t pair = item / finish.shape.groups, group = item - pair * finish.shape.groups;
  float totals[kItemFloats] = {};
  if (group_exists(place, group)) {
#pragma unroll 4
    for (uint32_t split = 0; split < params.splits; ++split) {
      const float4* const from =
          partial_item(params, warps, finish.items, split, tile, warp_of_tile, item) + lane;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 four = from[32 * half];
        totals[4 * half] += four.x, totals[4 * half + 1] += four.y;
        totals[4 * half + 2] += four.z, totals[4 * half + 3] += four.w;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kItemFloats; ++i) items[warp][i][lane] = totals[i];
  finish_both<Pass::kFused>(params, place, group, place.col + pair * kMmaRows + place.row,
                            items[warp]);
}

KernelLaunch finish_partials_launch(const FinishParams& params) {
  const uint64_t items = uint64_t{params.of_tiles.tiles} * params.shape.warps_n * params.items;
  KernelLaunch launch{.kernel = {"finish_sm80", "dual_gemm_sm80_finish",
                                 reinterpret_cast<const void*>(&dual_gemm_sm80_finish)},
                      .ctas = static_cast<uint32_t>((items + kWarps - 1) / kWarps),
                      .threads = kThreads};
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda::sm80
