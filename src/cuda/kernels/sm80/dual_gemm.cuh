// The dual GEMM for any GPU of compute capability 8.0 or later: mma.sync on decoded weights. With
// few rows each warp decodes its own in registers, from a ring in shared memory that cp.async
// fills. With many rows, producing warps fill stages with decoded weights, which all share.
//
// The sums of warps that divide k are added in the order of k, each by the warp that finishes it;
// those of CTAs that divide k by a launch of their own. What decides the bits of an element of D is
// which of the two loops over k runs and into how many parts k is divided: neither the other rows,
// nor the rest of the tile, nor the pass, nor whether weights are prepared.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/finish.cuh"
#include "cuda/kernels/sm80/multiply.cuh"
#include "cuda/kernels/sm80/multiply_shared.cuh"
#include "cuda/kernels/sm80/partials.cuh"
#include "cuda/kernels/sm80/produce.cuh"

namespace dualgemm::cuda::sm80 {

// [warp along k, without the one that finishes][item][float][lane].
template <Config kCfg>
using Exchange = float[kCfg.warps_k - 1][items_of(kCfg)][kItemFloats][32];

// The total of each item, in the first place of the exchange of the warp that finishes it: item %
// warps_k along k.
template <Config kCfg>
DUALGEMM_DEVICE void add_parts(const Place& place, const Sums<kCfg>& sums,
                               Exchange<kCfg>& exchange) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int index = 0; index < items_of(kCfg); ++index) {
    const uint32_t finisher = index % kCfg.warps_k;
    if (place.warp_k == finisher) continue;
    const uint32_t slot = place.warp_k < finisher ? place.warp_k : place.warp_k - 1;
#pragma unroll
    for (int i = 0; i < kItemFloats; ++i) exchange[slot][index][i][lane] = sums.of_item(index, i);
  }
  __syncwarp();
  __syncthreads();
#pragma unroll
  for (int index = 0; index < items_of(kCfg); ++index) {
    const uint32_t finisher = index % kCfg.warps_k;
    if (place.warp_k != finisher) continue;
    float totals[kItemFloats] = {};
    // Not unrolled: with 8 parts that would be a third of a kernel's instructions.
#pragma unroll 1
    for (uint32_t part = 0; part < kCfg.warps_k; ++part) {
      if (part == finisher) {
#pragma unroll
        for (int i = 0; i < kItemFloats; ++i) totals[i] += sums.of_item(index, i);
      } else {
        const auto& from = exchange[part < finisher ? part : part - 1][index];
#pragma unroll
        for (int i = 0; i < kItemFloats; ++i) totals[i] += from[i][lane];
      }
    }
#pragma unroll
    for (int i = 0; i < kItemFloats; ++i) exchange[0][index][i][lane] = totals[i] * kSumUnit<kCfg>;
  }
}

// The items of a warp alone, some at a time in its own part of shared memory.
template <Config kCfg>
DUALGEMM_DEVICE void finish_own(const Params& params, Place place, const Sums<kCfg>& sums,
                                uint8_t* smem) {
  constexpr int kBatch = batch_items_of(kCfg);  // a pair of units
  constexpr bool kBoth = kCfg.pass == Pass::kFused || kCfg.pass == Pass::kSequential;
  const uint32_t thread = ptx::thread_index_anew(), lane = thread % 32;
  auto* const items = reinterpret_cast<float(*)[kItemFloats][32]>(smem) + thread / 32 * kBatch;
#pragma unroll
  for (int first = 0; first < items_of(kCfg); first += kBatch) {
#pragma unroll
    for (int index = 0; index < kBatch; ++index) {
#pragma unroll
      for (int i = 0; i < kItemFloats; ++i)
        items[index][i][lane] = sums.of_item(first + index, i) * kSumUnit<kCfg>;
    }
    finish<kCfg.pass>(params, place, items, kBatch, kCfg.groups, 1);
    __syncwarp();
    place.col += kBoth ? kMmaRows : 2 * kMmaRows;
  }
}

// A CTA's shared memory in front of its stages.
template <Config kCfg>
struct Front {
  TileRows<kCfg> table;
  RingBarriers barriers;
};
template <Config kCfg>
requires(!shares_weights(kCfg)) struct Front<kCfg> {
  TileRows<kCfg> table;
};

struct Chunks {
  uint32_t begin, end;
};
// Part `part` of so many of k.
DUALGEMM_DEVICE Chunks chunks_of(const Params& params, uint32_t part, uint32_t parts) {
  const uint32_t chunks = (params.k16 + kChunkK16 - 1) / kChunkK16;
  return {chunks * part / parts, chunks * (part + 1) / parts};
}

template <Config kCfg>
DUALGEMM_DEVICE const OperandView& first_matrix(const Params& params) {
  return kCfg.pass == Pass::kUp ? params.up : params.gate;
}

// For kSequential: `multiply(matrix)` for Gate, then for Up, with one copy of its instructions.
template <Config kCfg, class Multiply>
DUALGEMM_DEVICE void multiply_both(const Params& params, Sums<kCfg>& sums,
                                   const Multiply& multiply) {
#pragma unroll 1
  for (int product = 0; product < 2; ++product) {
#pragma unroll
    for (int unit = 0; unit < loop_units_of(kCfg); ++unit) {
#pragma unroll
      for (int group = 0; group < kCfg.groups; ++group) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sums.first[unit][group][i] = sums.second[unit][group][i];
          sums.second[unit][group][i] = 0.0f;
        }
      }
    }
    multiply(product == 0 ? params.gate : params.up);
  }
}

// A tile with few rows.
template <Config kCfg>
DUALGEMM_DEVICE void compute_tile(const Params& params, const Place& place, uint32_t tile,
                                  const TileRows<kCfg>& table, uint8_t* stages) {
  const Chunks chunks = chunks_of(params, place.warp_k, kCfg.warps_k);
  Sums<kCfg> sums;
  const auto multiply_one = [&](const OperandView& matrix, LoopSums<kCfg>& of_one) {
    multiply<kCfg>(params, place, matrix, table, stages, chunks.begin, chunks.end, of_one);
    ptx::cp_async_wait_group<0>();
    __syncwarp();
    __syncthreads();  // the stages have been read
  };
  if constexpr (kCfg.pass == Pass::kSequential) {
    multiply_both<kCfg>(params, sums,
                        [&](const OperandView& matrix) { multiply_one(matrix, sums.second); });
  } else {
    multiply_one(first_matrix<kCfg>(params), sums.first);
  }
  // Found anew, so that the loop need not keep it in registers.
  const Place finished = place_of_thread<kCfg>(params, tile);
  auto& exchange = *reinterpret_cast<Exchange<kCfg>*>(stages);  // sums take the stages' place
  add_parts<kCfg>(finished, sums, exchange);
  finish<kCfg.pass>(params, finished, exchange[0], items_of(kCfg), kCfg.groups, kCfg.warps_k);
}

// Part index % splits of the k of tile index / splits, whose decoded weights are shared. Producers
// and the others have no barrier of the CTA in common: the ring's say all.
template <Config kCfg>
DUALGEMM_DEVICE void compute_shared_tile(const Params& params, const Place& place, uint32_t index,
                                         Front<kCfg>& front, uint8_t* stages, RingPosition& at) {
  const Chunks chunks = chunks_of(params, index % params.splits, params.splits);
  if (threadIdx.x >= 32 * warps_of(kCfg)) {
    const int products = kCfg.pass == Pass::kSequential ? 2 : 1;
#pragma unroll 1
    for (int product = 0; product < products; ++product) {
      produce<kCfg>(params, place, product == 0 ? first_matrix<kCfg>(params) : params.up,
                    front.table, stages, front.barriers, chunks.begin, chunks.end, at);
    }
    return;
  }
  Sums<kCfg> sums;
  const auto multiply_one = [&](LoopSums<kCfg>& of_one) {
    multiply_shared<kCfg>(params, place, stages, front.barriers, chunks.end - chunks.begin, at,
                          of_one);
  };
  if constexpr (kCfg.pass == Pass::kSequential) {
    multiply_both<kCfg>(params, sums, [&](const OperandView&) { multiply_one(sums.second); });
  } else {
    multiply_one(sums.first);
  }
  const uint32_t tile = index / params.splits;
  const Place finished = place_of_thread<kCfg>(params, tile);
  if (kCfg.pass == Pass::kFused && params.splits > 1) {
    store_partials<kCfg>(params, finished, index - tile * params.splits, tile, kSumUnit<kCfg>,
                         sums);
    return;
  }
  wait_until_read<kCfg>(front.barriers, params.stages, at);  // sums take the stages' place
  finish_own<kCfg>(params, finished, sums, stages);
}

// A CTA has one tile, or a part of its k; with groups there may be fewer tiles than CTAs, or, where
// rows name their experts, more.
template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  extern __shared__ __align__(kRowBytes) uint8_t smem[];
  auto& front = *reinterpret_cast<Front<kCfg>*>(smem);
  static_assert(sizeof(front) <= front_bytes_of(kCfg));
  uint8_t* const stages = smem + front_bytes_of(kCfg);
  [[maybe_unused]] RingPosition at;
  if constexpr (shares_weights(kCfg)) {
    if (threadIdx.x == 0) init_ring<kCfg>(front.barriers);
  }
  const bool grouped = params.groups.table != nullptr;
  const uint32_t splits = shares_weights(kCfg) ? params.splits : 1;
#pragma unroll 1
  for (uint32_t index = blockIdx.x;; index += gridDim.x) {
    const uint32_t tile = index / splits;
    if (grouped && tile / params.tiles_n >= number_of_tiles(params.groups)) return;
    const Place place = place_of_thread<kCfg>(params, tile);
    find_rows<kCfg>(params, place, front.table);
    __syncwarp();
    __syncthreads();
    if constexpr (shares_weights(kCfg)) {
      compute_shared_tile<kCfg>(params, place, index, front, stages, at);
    } else {
      compute_tile<kCfg>(params, place, tile, front.table, stages);
    }
    if (!grouped) return;
    __syncwarp();
    __syncthreads();  // sums and rows have been read
  }
}

}  // namespace dualgemm::cuda::sm80
