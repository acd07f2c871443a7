// From complete sums in shared memory to outputs: one copy of the instructions for all tiles of a
// pass.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/epilogue.cuh"

namespace dualgemm::cuda::sm80 {

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

// Items first .. first + count - 1 of a warp, or where warps divide k those in steps of `warps`
// from the warp's number along k on.
template <Pass kPass>
DUALGEMM_DEVICE void finish(const Params& params, const Place& place,
                            float (*items)[kItemFloats][32], uint32_t first, uint32_t count,
                            uint32_t groups, uint32_t warps) {
#pragma unroll 1
  for (uint32_t index = place.warp_k; index < count; index += warps) {
    const uint32_t pair = (first + index) / groups, group = first + index - pair * groups;
    if constexpr (kPass == Pass::kFused || kPass == Pass::kSequential) {
      finish_both<kPass>(params, place, group, place.col + pair * kMmaRows + place.row,
                         items[index]);
    } else {
      finish_one<kPass>(params, place, group, place.col + pair * 2 * kMmaRows + place.row,
                        items[index]);
    }
  }
}

}  // namespace dualgemm::cuda::sm80
