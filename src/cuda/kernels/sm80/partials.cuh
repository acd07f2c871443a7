// Sums of CTAs that divide the k of a tile, in the workspace. finish_partials.cu adds them.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/place.cuh"
#include "cuda/kernels/sm80/sums.cuh"

namespace dualgemm::cuda::sm80 {

// Chunks of k of one tile, which one CTA multiplies: all of them, or a part whose sums go to
// `slot`.
struct Piece {
  uint32_t tile;
  uint32_t begin, end;
  bool is_whole;
  uint64_t slot;
};

// Part `part` of so many of k: quotients by these.
struct Chunks {
  uint32_t begin, end;
};
template <class Quotient>
DUALGEMM_DEVICE Chunks chunks_of(const Params& params, uint32_t part, const Quotient& by_parts) {
  const uint32_t chunks = params.chunks.value;
  return {by_parts(chunks * part), by_parts(chunks * (part + 1))};
}

// Where sums over part `part` of a tile's k lie, if all tiles have as many parts.
DUALGEMM_DEVICE uint64_t slot_of_part(const Params& params, uint32_t part, uint32_t tile) {
  return static_cast<uint64_t>(part) * params.tiles + tile;
}

// The piece of a wide tile that a CTA has in turn number `turn`; in a share without one, or of a
// tile that no group has, nothing is to be done.
DUALGEMM_DEVICE Piece piece_of(const Params& params, uint32_t turn) {
  if (params.shares.ctas == 0) {
    const auto by_splits = [&](uint32_t number) { return quotient(number, params.splits); };
    const uint32_t index = blockIdx.x + turn * gridDim.x, tile = by_splits(index);
    const uint32_t part = index - tile * params.splits.value;
    const Chunks chunks = chunks_of(params, part, by_splits);
    return {tile, chunks.begin, chunks.end, params.splits.value == 1,
            slot_of_part(params, part, tile)};
  }
  const Shares& shares = params.shares;
  const uint32_t chunks = params.chunks.value;
  if (turn < shares.whole_turns) return {blockIdx.x + turn * shares.ctas, 0, chunks, true, 0};
  const bool is_first = turn == shares.whole_turns;
  const uint32_t begin = shares.begin(blockIdx.x);
  const uint32_t tile = quotient(begin, params.chunks) + turn - shares.whole_turns,
                 first = tile * chunks;
  const uint32_t end = min(shares.begin(blockIdx.x + 1), first + chunks);
  const uint32_t from = is_first ? begin : min(first, end);
  return {shares.first_shared_tile() + tile, from - first, end - first, end - from == chunks,
          Shares::slot(blockIdx.x, is_first)};
}

// Item `item` of a warp's sums: [half of an item][lane][4 floats]. items: of a warp.
DUALGEMM_DEVICE float4* partial_item(const Params& params, uint32_t warps, uint32_t items,
                                     uint64_t slot, uint32_t warp, uint32_t item) {
  return reinterpret_cast<float4*>(params.partials) +
         ((slot * warps + warp) * items + item) * kItemFloats * 8;
}

// Whether rows of a group of the warp's exist: where they do not, nothing is stored or read.
DUALGEMM_DEVICE bool group_exists(const Place& place, uint32_t group) {
  return place.m_begin + group * kGroupRows < place.m_end;
}

// As they are: sum_unit_of() multiplies their total, as that of warps that divide k. A part alone
// may be beyond FP32 times that.
template <Config kCfg>
DUALGEMM_DEVICE void store_partials(const Params& params, const Place& place, uint64_t slot,
                                    const Sums<kCfg>& sums) {
  const uint32_t thread = ptx::thread_index_anew(), warp = thread / 32, lane = thread % 32;
#pragma unroll
  for (int item = 0; item < items_of(kCfg); ++item) {
    if (!group_exists(place, item % kCfg.groups)) continue;
    float4* const to =
        partial_item(params, warps_of(kCfg), items_of(kCfg), slot, warp, item) + lane;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      to[32 * half] =
          make_float4(sums.of_item(item, 4 * half), sums.of_item(item, 4 * half + 1),
                      sums.of_item(item, 4 * half + 2), sums.of_item(item, 4 * half + 3));
    }
  }
}

}  // namespace dualgemm::cuda::sm80
