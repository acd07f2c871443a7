// The dual GEMM for any GPU of compute capability 8.0 or later: mma.sync on weights that each warp
// decodes in registers, operands through a ring in shared memory that cp.async fills.
//
// The sums of warps that divide k are added in the order of k, each by the warp that finishes it.
// What decides the bits of an element of D is warps_k alone: neither the other rows, nor the rest
// of the tile, nor the pass, nor whether weights are prepared.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/epilogue.cuh"
#include "cuda/kernels/sm80/multiply.cuh"

namespace dualgemm::cuda::sm80 {

// All sums of a warp: `second` are those of Up, of kSequential alone; `first` then of Gate.
template <Config kCfg>
struct Sums {
  LoopSums<kCfg> first{};
  LoopSums<kCfg> second{};

  // Float i of item `index`, what is finished together of a group of rows: two units of
  // neighbouring columns, or the same unit of Gate and of Up.
  DUALGEMM_DEVICE float of_item(int index, int i) const {
    const int pair = index / kCfg.groups, group = index % kCfg.groups;
    if constexpr (kCfg.pass == Pass::kSequential) {
      return i < 4 ? first[pair][group][i] : second[pair][group][i - 4];
    } else {
      return first[2 * pair + i / 4][group][i % 4];
    }
  }
};

// [warp along k, without the one that finishes][warp along n][item][float][lane].
template <Config kCfg>
using Exchange =
    float[kCfg.warps_k > 1 ? kCfg.warps_k - 1 : 1][kCfg.warps_n][items_of(kCfg)][kItemFloats][32];

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
    for (int i = 0; i < kItemFloats; ++i)
      exchange[slot][place.warp_n][index][i][lane] = sums.of_item(index, i);
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
        const auto& from = exchange[part < finisher ? part : part - 1][place.warp_n][index];
#pragma unroll
        for (int i = 0; i < kItemFloats; ++i) totals[i] += from[i][lane];
      }
    }
#pragma unroll
    for (int i = 0; i < kItemFloats; ++i)
      exchange[0][place.warp_n][index][i][lane] = totals[i] * kSumUnit<kCfg>;
  }
}

// g becomes an output: of both products, or where they stand side by side of one, whose factor is
// act(g) * 1. One copy of the instructions for both cases.
DUALGEMM_DEVICE void activate_product(const Params& params, float (&g)[2], const float (&u)[2]) {
  const bool two = params.combine.side_by_side;
  if (two && !params.combine.activates_each) return;
  const float others[2] = {two ? 1.0f : u[0], two ? 1.0f : u[1]};
  activate_all(params.act, g, others);
}

// Both products of an item, halves of 8 columns. Outputs of NVFP4 take the place of Gate's sums
// until their block is whole: a loop over halves, so that there is one copy of the activations.
template <Pass kPass>
DUALGEMM_DEVICE void finish_both(const Params& params, const Place& place, uint32_t group,
                                 uint32_t col, float (&totals)[kItemFloats][32]) {
  constexpr uint32_t kHalf = kPass == Pass::kFused ? 4 : 2, kUp = kPass == Pass::kFused ? 2 : 4;
  const uint32_t lane = threadIdx.x % 32;
  const int products = params.combine.side_by_side ? 2 : 1;
#pragma unroll 1
  for (int product = 0; product < products; ++product) {
#pragma unroll 1
    for (uint32_t half = 0; half < 2; ++half) {
      __syncwarp();
      float(*const sums)[32] = totals + kHalf * half;
      const uint32_t column = col + half * kHalfCols;
      float g[2] = {sums[0][lane], sums[1][lane]}, u[2] = {sums[kUp][lane], sums[kUp + 1][lane]};
      apply_factors(params, place, group, column, g, u);
      if (product == 1) g[0] = u[0], g[1] = u[1];
      activate_product(params, g, u);
      if (params.output == OutputType::kE2M1) {
        sums[0][lane] = g[0], sums[1][lane] = g[1];
      } else {
        store_column(params, place, group, product, column, g);
      }
    }
    if (params.output == OutputType::kE2M1) {
      store_block(params, place, group, product, col, {totals[0][lane], totals[1][lane]},
                  {totals[kHalf][lane], totals[kHalf + 1][lane]});
    }
  }
}

// One product of an item's two units, 16 columns each: into R1, or with R1 into D.
template <Pass kPass>
DUALGEMM_DEVICE void finish_one(const Params& params, const Place& place, uint32_t group,
                                uint32_t col, float (&totals)[kItemFloats][32]) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll 1
  for (uint32_t half = 0; half < 4; ++half) {  // two of a unit
    __syncwarp();
    float(*const sums)[32] = totals + 2 * half;
    const uint32_t column = col + half * kHalfCols;
    float u[2] = {sums[0][lane], sums[1][lane]};
    if constexpr (kPass == Pass::kGate) {
      store_r1(params, place, group, column, u);
    } else {
      float g[2];
      load_r1(params, place, group, column, g);
      apply_factors(params, place, group, column, g, u);
      activate_all(params.act, g, u);
      if (params.output != OutputType::kE2M1) {
        store_column(params, place, group, 0, column, g);
        continue;
      }
      sums[0][lane] = g[0], sums[1][lane] = g[1];
      if (half % 2 == 1) {
        store_block(params, place, group, 0, column - kHalfCols,
                    {totals[2 * half - 2][lane], totals[2 * half - 1][lane]}, g);
      }
    }
  }
}

// The items of a warp: those in steps of `warps` from the warp's number along k on.
template <Pass kPass>
__device__ __noinline__ void finish(const Params& params, Place place,
                                    float (*items)[kItemFloats][32], uint32_t count,
                                    uint32_t groups, uint32_t warps) {
#pragma unroll 1
  for (uint32_t index = place.warp_k; index < count; index += warps) {
    const uint32_t pair = index / groups, group = index - pair * groups;
    if constexpr (kPass == Pass::kFused || kPass == Pass::kSequential) {
      finish_both<kPass>(params, place, group, place.col + pair * kMmaRows + place.row,
                         items[index]);
    } else {
      finish_one<kPass>(params, place, group, place.col + pair * 2 * kMmaRows + place.row,
                        items[index]);
    }
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void compute_tile(const Params& params, uint32_t tile, uint8_t* smem) {
  auto& table = *reinterpret_cast<TileRows<kCfg>*>(smem);
  static_assert(sizeof(TileRows<kCfg>) == table_bytes_of(kCfg));
  uint8_t* const stages = smem + table_bytes_of(kCfg);
  const Place place = place_of_thread<kCfg>(params, tile);
  find_rows<kCfg>(params, place, table);
  __syncwarp();
  __syncthreads();
  Sums<kCfg> sums;
  if constexpr (kCfg.pass == Pass::kSequential) {
    // One copy of the loop over k for both products.
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
      multiply<kCfg>(params, place, product == 0 ? params.gate : params.up, table, stages,
                     sums.second);
      ptx::cp_async_wait_group<0>();
      __syncwarp();
      __syncthreads();  // the stages have been read
    }
  } else {
    multiply<kCfg>(params, place, kCfg.pass == Pass::kUp ? params.up : params.gate, table, stages,
                   sums.first);
  }
  ptx::cp_async_wait_group<0>();
  __syncwarp();
  __syncthreads();  // the stages have been read: sums take their place
  // Found anew, so that the loop need not keep it in registers.
  const Place finished = place_of_thread<kCfg>(params, tile);
  auto& exchange = *reinterpret_cast<Exchange<kCfg>*>(stages);
  add_parts<kCfg>(finished, sums, exchange);
  finish<kCfg.pass>(params, finished, exchange[0][finished.warp_n], items_of(kCfg), kCfg.groups,
                    kCfg.warps_k);
}

// A CTA has one tile; with groups there may be fewer tiles than CTAs, or, where rows name their
// experts, more.
template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  extern __shared__ __align__(16) uint8_t smem[];
  if (params.groups.table == nullptr) {
    compute_tile<kCfg>(params, blockIdx.x, smem);
    return;
  }
#pragma unroll 1
  for (uint32_t tile = blockIdx.x; tile / params.tiles_n < number_of_tiles(params.groups);
       tile += gridDim.x) {
    compute_tile<kCfg>(params, tile, smem);
    __syncwarp();
    __syncthreads();  // sums and rows have been read
  }
}

}  // namespace dualgemm::cuda::sm80
