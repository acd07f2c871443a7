#include "cuda/kernels/sm80/finish_partials.hpp"

#include "cuda/kernels/sm80/finish.cuh"
#include "cuda/kernels/sm80/partials.cuh"

namespace dualgemm::cuda::sm80 {
namespace {

constexpr uint32_t kThreads = 256, kWarps = kThreads / 32;

// kParts of an item from part `part` on, which are asked for together: a wait is one way to memory.
// With a condition for each of up to eight parts instead, calls took up to 2 us longer.
template <uint32_t kParts, class From>
DUALGEMM_DEVICE void add_parts(const From& from, uint32_t part, float (&totals)[kItemFloats]) {
  float4 parts[kParts][2];
#pragma unroll
  for (uint32_t i = 0; i < kParts; ++i)
    parts[i][0] = from(part + i)[0], parts[i][1] = from(part + i)[32];
#pragma unroll
  for (uint32_t i = 0; i < kParts; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float4& four = parts[i][half];
      totals[4 * half] += four.x, totals[4 * half + 1] += four.y;
      totals[4 * half + 2] += four.z, totals[4 * half + 3] += four.w;
    }
  }
}

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
  const Shares& shares = params.shares;
  const uint32_t shared_tile = of_warp / warps, warp_of_tile = of_warp - shared_tile * warps;
  const uint32_t tile = shares.first_shared_tile() + shared_tile;
  if (tile >= params.tiles) return;
  const Place place = place_of(params, finish.shape, tile, warp_of_tile * 32 + lane);
  const uint32_t pair = item / finish.shape.groups, group = item - pair * finish.shape.groups;
  // The tile's parts: equal ones, or what CTAs have of it in their shares. The first of those CTAs
  // may have begun its share in the tile before.
  const uint32_t chunks = params.chunks.value, begin = shared_tile * chunks;
  uint32_t first = 0, end = params.splits.value;
  if (shares.ctas != 0) {
    first = shares.owner(begin);
    end = shares.owner(begin + chunks - 1) + 1;
    if (end - first == 1) return;  // one CTA has all of it
  }
  const bool first_begins_here = shares.ctas != 0 && shares.begin(first) >= begin;
  const auto slot_of = [&](uint32_t part) {
    return shares.ctas == 0 ? slot_of_part(params, part, tile)
                            : Shares::slot(part, part != first || first_begins_here);
  };
  float totals[kItemFloats] = {};
  if (group_exists(place, group)) {
    const auto from = [&](uint32_t part) {
      return partial_item(params, warps, finish.items, slot_of(part), warp_of_tile, item) + lane;
    };
    uint32_t part = first;
#pragma unroll 1
    for (; part + 4 < end; part += 3) add_parts<3>(from, part, totals);
    switch (end - part) {
      case 4:
        add_parts<4>(from, part, totals);
        break;
      case 3:
        add_parts<3>(from, part, totals);
        break;
      case 2:
        add_parts<2>(from, part, totals);
        break;
      default:
        add_parts<1>(from, part, totals);
    }
  }
#pragma unroll
  for (int i = 0; i < kItemFloats; ++i) items[warp][i][lane] = totals[i] * params.sum_unit;
  finish_item<ItemKind::kBoth>(params, place, group, place.col + pair * kMmaRows + place.row,
                               items[warp]);
}

KernelLaunch finish_partials_launch(const FinishParams& params) {
  const uint32_t tiles = params.of_tiles.tiles - params.of_tiles.shares.first_shared_tile();
  const uint64_t items = uint64_t{tiles} * params.shape.warps_n * params.items;
  KernelLaunch launch{.kernel = {"finish_sm80", "dual_gemm_sm80_finish",
                                 reinterpret_cast<const void*>(&dual_gemm_sm80_finish)},
                      .ctas = static_cast<uint32_t>((items + kWarps - 1) / kWarps),
                      .threads = kThreads};
  launch.set_params(params);
  return launch;
}

}  // namespace dualgemm::cuda::sm80
