// From complete sums to D, or to R1. A thread has rows 2q and 2q+1 of a group of 8 (q = lane % 4)
// in one column at a time.
#pragma once

#include <cstdint>

#include "cuda/device/combine.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/common/store_nvfp4.cuh"
#include "cuda/kernels/sm80/decode.cuh"
#include "cuda/kernels/sm80/place.cuh"

namespace dualgemm::cuda::sm80 {

DUALGEMM_DEVICE uint32_t output_row(const Place& place, uint32_t group, int i) {
  return place.m_begin + group * kGroupRows + 2 * place.quarter + i;
}

DUALGEMM_DEVICE void store_output(const Params& params, uint32_t batch, uint32_t row, uint32_t col,
                                  float value) {
  uint8_t* const to = params.d + batch * params.d_batch_bytes + row * params.d_row_bytes +
                      static_cast<uint64_t>(col) * bytes_of(params.output);
  store_element(params.output, to, with_residual(params, params.output, to, value));
}

// g = alpha_gate * g + bias, u = alpha_up * u + bias, g and u the products.
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
DUALGEMM_DEVICE void store_block(const Params& params, const Place& place, uint32_t group,
                                 int product, uint32_t col, const float (&low)[2],
                                 const float (&high)[2]) {
  const uint32_t block = block_of(params, columns_of(params, product), col);
  OutputRows rows = rows_of_batch(params, place.batch);
  if (params.groups.table != nullptr)
    rows = rows_of_group(params, tile_of(params.groups, place.group_tile));
  store_two_rows(params, rows, output_row(place, group, 0), block, low, high);
  clear_scales_below(params, rows, output_row(place, group, 0) - 2 * place.quarter, kGroupRows,
                     block);
}

// Where the product of a row with Gate's row `col` lies; null: nowhere.
DUALGEMM_DEVICE float* r1_at(const Params& params, const Place& place, uint32_t group, uint32_t col,
                             int i) {
  const uint32_t row = output_row(place, group, i);
  if (row >= place.m_end || col >= params.n) return nullptr;
  return params.r1 + (static_cast<int64_t>(place.batch) * params.m + row) * params.r1_ld + col;
}

DUALGEMM_DEVICE void store_r1(const Params& params, const Place& place, uint32_t group,
                              uint32_t col, const float (&g)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float* const to = r1_at(params, place, group, col, i);
    if (to != nullptr) *to = g[i];
  }
}

DUALGEMM_DEVICE void load_r1(const Params& params, const Place& place, uint32_t group, uint32_t col,
                             float (&g)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float* const from = r1_at(params, place, group, col, i);
    g[i] = from == nullptr ? 0.0f : *from;
  }
}

}  // namespace dualgemm::cuda::sm80
