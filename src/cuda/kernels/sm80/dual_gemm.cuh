// The dual GEMM for any GPU of compute capability 8.0 or later: mma.sync on weights that each warp
// decodes in registers, from a ring in shared memory that cp.async fills. With few rows warps
// divide k and read their parts of A themselves; with many they stand side by side and share them.
//
// The sums of warps that divide k are added in the order of k, each by the warp that finishes it;
// those of CTAs that divide k by a launch of their own. Into how many parts k is divided, by
// whichever of the two, decides the bits of an element of D: neither the other rows, nor the rest
// of the tile, nor the pass, nor whether weights are prepared. Where CTAs have equal shares of
// tiles, each of these is divided where shares end.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/finish.cuh"
#include "cuda/kernels/sm80/multiply.cuh"
#include "cuda/kernels/sm80/multiply_wide.cuh"
#include "cuda/kernels/sm80/partials.cuh"

namespace dualgemm::cuda::sm80 {

// [warp along k, without the one that finishes][item][float][lane].
template <Config kCfg>
using Exchange = float[kCfg.warps_k - 1][items_of(kCfg)][kItemFloats][32];

// The total of each item, in the first place of the exchange of the warp that finishes it: item %
// warps_k along k.
template <Config kCfg>
DUALGEMM_DEVICE void add_parts(const Params& params, const Place& place, const Sums<kCfg>& sums,
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
    for (int i = 0; i < kItemFloats; ++i) exchange[0][index][i][lane] = totals[i] * params.sum_unit;
  }
}

// The items of a warp alone, some at a time in its own part of shared memory. between() once, when
// the first of them have left the registers.
template <Config kCfg, class Between>
DUALGEMM_DEVICE void finish_own(const Params& params, const Place& place, const Sums<kCfg>& sums,
                                uint8_t* smem, const Between& between) {
  constexpr int kItems = items_of(kCfg), kBatch = batch_items_of(kCfg);
  static_assert(kItems % kBatch == 0);
  static_assert(!is_wide(kCfg) || sums_bytes_of(kCfg) <= kRowStages * rows_bytes_of(kCfg),
                "weights of the next tile are on their way into the stages behind");
  const uint32_t thread = ptx::thread_index_anew(), lane = thread % 32;
  auto* const items = reinterpret_cast<float(*)[kItemFloats][32]>(smem) + thread / 32 * kBatch;
  float rest[kItems][kItemFloats];
#pragma unroll
  for (int index = 0; index < kItems; ++index) {
#pragma unroll
    for (int i = 0; i < kItemFloats; ++i) rest[index][i] = sums.of_item(index, i);
  }
  // One loop: with another one around it the compiler loads constants anew for each output.
  uint32_t at = kBatch;
#pragma unroll 1
  for (uint32_t item = 0; item < kItems; ++item, ++at) {
    if (at == kBatch) {
      __syncwarp();
#pragma unroll
      for (int index = 0; index < kItems; ++index) {
#pragma unroll
        for (int i = 0; i < kItemFloats; ++i) {
          if (index < kBatch) {
            items[index][i][lane] = rest[index][i] * params.sum_unit;
          } else {
            rest[index - kBatch][i] = rest[index][i];
          }
        }
      }
      if (item == 0) between();
      at = 0;
    }
    finish<item_kind_of(kCfg)>(params, place, item, kCfg.groups, items[at]);
  }
}

// What wide tiles have in front of their stages.
struct Front {
  RowTable table;
  ptx::Barrier read;
};
static_assert(sizeof(Front) <= kFrontBytes);

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

// multiply<type of A, whether it is plain>(), where plain ones have loops of their own.
template <Config kCfg, class Multiply>
DUALGEMM_DEVICE void for_rows(const Params& params, const Multiply& multiply) {
  const auto of_type = [&]<AType kType>() {
    if (has_plain_loop(kCfg) && params.a_plain) {
      multiply.template operator()<kType, has_plain_loop(kCfg)>();
    } else {
      multiply.template operator()<kType, false>();
    }
  };
  switch (params.a_type) {
    case AType::kE2M1:
      return of_type.template operator()<AType::kE2M1>();
    case AType::kF16:
      return of_type.template operator()<AType::kF16>();
    case AType::kBF16:
      return of_type.template operator()<AType::kBF16>();
  }
}

// Through a shuffle, so that it is found anew: the loops leave no register for it.
DUALGEMM_DEVICE uint32_t tile_of_turn(uint32_t turn) {
  return blockIdx.x + __shfl_sync(~0u, turn, 0) * gridDim.x;
}

// A tile with few rows.
template <Config kCfg>
DUALGEMM_DEVICE void compute_tile(const Params& params, uint32_t turn, uint8_t* stages) {
  const Place place = place_of_thread<kCfg>(params, tile_of_turn(turn));
  const uint32_t warp_k = ptx::warp_index();
  const Chunks chunks =
      chunks_of(params, warp_k, [](uint32_t number) { return number / kCfg.warps_k; });
  Sums<kCfg> sums;
  const auto multiply_one = [&](const OperandView& matrix, LoopSums<kCfg>& of_one) {
    for_rows<kCfg>(params, [&]<AType kType, bool kPlain>() {
      multiply<kCfg, kType, kPlain>(
          params, lacks_registers(kCfg) ? place_of_thread<kCfg>(params, tile_of_turn(turn)) : place,
          matrix, stages, warp_k, chunks.begin, chunks.end, of_one);
    });
  };
  if constexpr (kCfg.pass == Pass::kSequential) {
    multiply_both<kCfg>(params, sums,
                        [&](const OperandView& matrix) { multiply_one(matrix, sums.second); });
  } else {
    multiply_one(params.gate, sums.first);
  }
  ptx::cp_async_wait_group<0>();
  __syncwarp();
  __syncthreads();  // sums take the stages' place
  // Found anew, so that the loop need not keep it in registers.
  const Place finished = place_of_thread<kCfg>(params, tile_of_turn(turn));
  auto& exchange = *reinterpret_cast<Exchange<kCfg>*>(stages);
  add_parts<kCfg>(params, finished, sums, exchange);
#pragma unroll 1
  for (uint32_t item = finished.warp_k; item < items_of(kCfg); item += kCfg.warps_k)
    finish<item_kind_of(kCfg)>(params, finished, item, kCfg.groups, exchange[0][item]);
}

// Whether a CTA has one tile, or a part of one; else it takes turns.
DUALGEMM_DEVICE bool has_one_tile(const Params& params) {
  return params.groups.table == nullptr && params.shares.ctas == 0;
}

// Whether the CTA has something to do. With groups there may be fewer tiles than CTAs, or, where
// rows name their experts, more.
DUALGEMM_DEVICE bool tile_exists(const Params& params, uint32_t tile) {
  if (params.groups.table == nullptr) return tile < params.tiles;
  return tile < uint64_t{number_of_tiles(params.groups)} * params.tiles_n;
}
DUALGEMM_DEVICE bool has_work(const Params& params, const Piece& piece) {
  return tile_exists(params, piece.tile) && (params.shares.ctas == 0 || piece.begin != piece.end);
}

// The piece of a wide tile that is the CTA's in turn number `turn`. Where begins_next_tile(), the
// weights of the next turn's piece are asked for before all outputs are made; so the first turn
// asks for its own.
template <Config kCfg>
DUALGEMM_DEVICE void compute_wide_tile(const Params& params, const Piece& piece, uint32_t turn,
                                       RowTable& table, RowsBarrier& read, uint8_t* stages) {
  constexpr bool kBeginsNext = begins_next_tile(kCfg);
  const Place place = place_of_thread<kCfg>(params, piece.tile);
  if (kBeginsNext && turn == 0)
    begin_weights<kCfg>(params, place, params.gate, stages, piece.begin, piece.end);
  Sums<kCfg> sums;
  const auto multiply_one = [&](const OperandView& matrix, LoopSums<kCfg>& of_one) {
    if (piece.begin == piece.end) return;  // there are more parts of k than chunks
    for_rows<kCfg>(params, [&]<AType kType, bool kPlain>() {
      multiply_wide<kCfg, kType, kPlain>(params, place, matrix, table, stages, read, piece.begin,
                                         piece.end, of_one);
    });
    ptx::cp_async_wait_group<0>();
    __syncwarp();
    __syncthreads();  // sums, or the other product's stages, take the stages' place
    read.wait<false>();
  };
  if constexpr (kCfg.pass == Pass::kSequential) {
    multiply_both<kCfg>(params, sums,
                        [&](const OperandView& matrix) { multiply_one(matrix, sums.second); });
  } else {
    multiply_one(params.gate, sums.first);
  }
  const auto begin_next = [&] {
    if (!kBeginsNext || has_one_tile(params)) return;
    const Piece next = piece_of(params, turn + 1);
    if (!has_work(params, next)) return;
    begin_weights<kCfg>(params, place_of_thread<kCfg>(params, next.tile), params.gate, stages,
                        next.begin, next.end);
  };
  // Found anew, so that the loop need not keep them in registers.
  const Piece done = piece_of(params, turn);
  const Place finished = place_of_thread<kCfg>(params, done.tile);
  if (kCfg.pass == Pass::kFused && !done.is_whole) {
    store_partials<kCfg>(params, finished, done.slot, sums);
    begin_next();
    return;
  }
  finish_own<kCfg>(params, finished, sums, stages, begin_next);
}

// A CTA has one tile, a part of its k, several tiles in turns, or a share of all tiles.
template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  extern __shared__ __align__(kRowBytes) uint8_t smem[];
  if constexpr (is_wide(kCfg)) {
    auto& front = *reinterpret_cast<Front*>(smem);
    RowsBarrier read{front.read};
    if (threadIdx.x == 0) ptx::mbarrier_init(&read.barrier, warps_of(kCfg));
    __syncwarp();  // the barrier that others wait for comes before the first arrival
#pragma unroll 1
    for (uint32_t turn = 0;; ++turn) {
      const Piece piece = piece_of(params, turn);
      if (!has_work(params, piece)) return;
      compute_wide_tile<kCfg>(params, piece, turn, front.table, read, smem + kFrontBytes);
      if (has_one_tile(params)) return;
      __syncwarp();
      __syncthreads();  // sums have been read
    }
  } else {
#pragma unroll 1
    for (uint32_t turn = 0;; ++turn) {
      if (!tile_exists(params, tile_of_turn(turn))) return;
      compute_tile<kCfg>(params, turn, smem);
      if (has_one_tile(params)) return;
      __syncwarp();
      __syncthreads();  // sums have been read
    }
  }
}

}  // namespace dualgemm::cuda::sm80
