// From complete sums in shared memory to outputs: one copy of the instructions for all items of a
// kernel.
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

// An item's outputs from column `col` on, or its part of R1: 16 columns at a time, halves of 8 one
// after the other. Outputs of NVFP4 take the place of sums until their block is whole: one copy of
// the activations serves all.
template <ItemKind kKind>
DUALGEMM_DEVICE void finish_item(const Params& params, const Place& place, uint32_t group,
                                 uint32_t col, float (&totals)[kItemFloats][32]) {
  const bool one = kKind == ItemKind::kAny && makes_one_product(params.pass);
  // From a half's sums to the next one's; from those of Gate to those of Up.
  const uint32_t next = kKind == ItemKind::kSequential || one ? 2 : 4;
  const uint32_t up = one ? 0 : 6 - next;
  const uint32_t lane = threadIdx.x % 32;
  const int turns = one || params.combine.side_by_side ? 2 : 1;  // of units, or of products
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
    const int product = one ? 0 : turn;
    const uint32_t first = one ? turn * kMmaRows : 0;  // column
    float(*const block)[32] = totals + first / 4;
#pragma unroll 1
    for (uint32_t half = 0; half < 2; ++half) {
      __syncwarp();
      float(*const sums)[32] = block + next * half;
      const uint32_t column = col + first + half * kHalfCols;
      float g[2] = {sums[0][lane], sums[1][lane]}, u[2] = {sums[up][lane], sums[up + 1][lane]};
      if (one) {
        if (params.pass == Pass::kGate) {
          store_r1(params, place, group, column, g);
          continue;
        }
        load_r1(params, place, group, column, g);
      }
      apply_factors(params, place, group, column, g, u);
      if (product == 1) g[0] = u[0], g[1] = u[1];
      activate_product(params, g, u);
      if (params.output == OutputType::kE2M1) {
        sums[0][lane] = g[0], sums[1][lane] = g[1];
      } else {
        store_column(params, place, group, product, column, g);
      }
    }
    if (params.output == OutputType::kE2M1 && !(one && params.pass == Pass::kGate)) {
      store_block(params, place, group, product, col + first, {block[0][lane], block[1][lane]},
                  {block[next][lane], block[next + 1][lane]});
    }
  }
}

// Item number `item` of a warp, in a tile with so many groups.
template <ItemKind kKind>
DUALGEMM_DEVICE void finish(const Params& params, const Place& place, uint32_t item,
                            uint32_t groups, float (&totals)[kItemFloats][32]) {
  const bool one = kKind == ItemKind::kAny && makes_one_product(params.pass);
  const uint32_t pair = item / groups, group = item - pair * groups;
  const uint32_t first = pair * (one ? 2 * kMmaRows : kMmaRows);
  finish_item<kKind>(params, place, group, place.col + first + place.row, totals);
}

}  // namespace dualgemm::cuda::sm80
