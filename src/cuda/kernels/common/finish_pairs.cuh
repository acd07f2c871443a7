// From complete sums to D where mma leaves them: a thread has rows 2q and 2q+1 of a group of 8 rows
// of A (q = lane % 4) in one column of D at a time, both products of it.
//
// Params: a kernel's, set by set_epilogue(), with `output` and `groups`. Place: what a kernel knows
// of its tile: m_begin, m_end, batch, group_tile (of groups: in their table) and quarter.
#pragma once

#include <cstdint>

#include "cuda/device/combine.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/group_tiles.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/common/pair_item.hpp"
#include "cuda/kernels/common/store_nvfp4.cuh"

namespace dualgemm::cuda {

template <class Place>
DUALGEMM_DEVICE uint32_t output_row(const Place& place, uint32_t group, int i) {
  return place.m_begin + group * kPairGroupRows + 2 * place.quarter + i;
}

template <class Params>
DUALGEMM_DEVICE void store_output(const Params& params, uint32_t batch, uint32_t row, uint32_t col,
                                  float value) {
  uint8_t* const to = params.d + batch * params.d_batch_bytes + row * params.d_row_bytes +
                      static_cast<uint64_t>(col) * bytes_of(params.output);
  store_element(params.output, to, with_residual(params, params.output, to, value));
}

// g = alpha_gate * g + bias, u = alpha_up * u + bias, g and u the products.
template <class Params, class Place>
DUALGEMM_DEVICE void apply_factors(const Params& params, const Place& place, uint32_t group,
                                   uint32_t col, float (&g)[2], float (&u)[2]) {
  const Alphas alphas = alphas_of(params, place.batch);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t row = output_row(place, group, i);
    const float row_scale = row < place.m_end ? row_scale_of(params, place.batch, row) : 1.0f;
    g[i] = g[i] * alphas.gate * row_scale;
    u[i] = u[i] * alphas.up * row_scale;
  }
  if (col < params.n) add_column_bias(params, place.batch, col, g, u);
}

// To D, which is not kE2M1. product: as of columns_of().
template <class Params, class Place>
DUALGEMM_DEVICE void store_column(const Params& params, const Place& place, uint32_t group,
                                  int product, uint32_t col, const float (&outputs)[2]) {
  const Columns columns = columns_of(params, product);
  if (col >= columns.end) return;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t row = output_row(place, group, i);
    if (row < place.m_end) store_output(params, place.batch, row, col + columns.shift, outputs[i]);
  }
}

// To D, which is kE2M1: two columns of a block of 16, `col` and the one 8 further. By a warp.
template <class Params, class Place>
DUALGEMM_DEVICE void store_block(const Params& params, const Place& place, uint32_t group,
                                 int product, uint32_t col, const float (&low)[2],
                                 const float (&high)[2]) {
  const uint32_t block = block_of(params, columns_of(params, product), col);
  OutputRows rows = rows_of_batch(params, place.batch);
  if (params.groups.table != nullptr)
    rows = rows_of_group(params, tile_of(params.groups, place.group_tile));
#pragma unroll
  for (int i = 0; i < 2; ++i)
    store_nvfp4(params, rows, output_row(place, group, i), block, low[i], high[i]);
  clear_scales_below(params, rows, place.m_begin + group * kPairGroupRows, kPairGroupRows, block);
}

// g becomes an output: of both products, or where they stand side by side of one, whose factor is
// act(g) * 1. One copy of the instructions for both cases.
template <class Params>
DUALGEMM_DEVICE void activate_product(const Params& params, float (&g)[2], const float (&u)[2]) {
  const bool two = params.combine.side_by_side;
  if (two && !params.combine.activates_each) return;
  const float others[2] = {two ? 1.0f : u[0], two ? 1.0f : u[1]};
  activate_all(params.act, g, others);
}

// Both products of an item, halves of 8 columns: `totals` holds a lane's sums in memory of its
// own warp, half h from 'kHalf * h' on, Up's `kUp` behind Gate's. Outputs of NVFP4 take the place
// of Gate's sums until their block is whole: a loop over halves, so that there is one copy of the
// activations.
template <uint32_t kHalf, uint32_t kUp, class Params, class Place>
DUALGEMM_DEVICE void finish_both(const Params& params, const Place& place, uint32_t group,
                                 uint32_t col, float (&totals)[kItemFloats][32]) {
  const uint32_t lane = threadIdx.x % 32;
  const int products = params.combine.side_by_side ? 2 : 1;
#pragma unroll 1
  for (int product = 0; product < products; ++product) {
#pragma unroll 1
    for (uint32_t half = 0; half < 2; ++half) {
      __syncwarp();
      float(*const sums)[32] = totals + kHalf * half;
      const uint32_t column = col + half * kPairUnitCols;
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

}  // namespace dualgemm::cuda
