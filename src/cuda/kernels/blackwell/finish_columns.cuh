// From both accumulators of a row, in registers, to D: what the kernels of one CTA and of a pair do
// alike.
#pragma once

#include <cstdint>

#include "cuda/device/combine.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/blackwell/params.hpp"
#include "cuda/kernels/blackwell/stage.hpp"
#include "cuda/kernels/common/store_nvfp4.cuh"

namespace dualgemm::cuda::blackwell {

// What scales the accumulators of one row.
struct RowScales {
  float alpha_gate, alpha_up, row;
};

DUALGEMM_DEVICE RowScales row_scales(const Params& params, uint32_t batch, uint32_t row) {
  RowScales scales{params.alpha_gate, params.alpha_up, 1.0f};
  if (params.alpha_gate_per_batch != nullptr)
    scales.alpha_gate = params.alpha_gate_per_batch[batch];
  if (params.alpha_up_per_batch != nullptr) scales.alpha_up = params.alpha_up_per_batch[batch];
  if (params.a_row_scale != nullptr && row < params.m) {
    scales.row = params.a_row_scale[static_cast<uint64_t>(batch) * params.row_scale_stride + row];
  }
  return scales;
}

// D as NVFP4: 16 outputs of a row that exists, a thread's own.
DUALGEMM_DEVICE void store_block(const Params& params, const OutputRows& rows, uint32_t row,
                                 uint32_t block, const float (&outputs)[kBlock]) {
  uint32_t signs[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < kBlock; ++i)
    signs[i / 8] |= (__float_as_uint(outputs[i]) >> 28 & 8u) << (i % 8 * 4);
  const EncodedBlock encoded =
      encode_block<false>(outputs, signs, amax_of_block(outputs), params.nvfp4.quantize);
#pragma unroll
  for (uint32_t half = 0; half < 2; ++half)
    store_codes(params, rows.batch, row, block, half, encoded.words[half]);
  store_scale(params, rows.batch, row + rows.scale_shift, block, encoded.scale);
}

// Zeros in columns n_begin .. n_end - 1 of a row that does not exist, but in a tile of scales.
DUALGEMM_DEVICE void clear_scales(const Params& params, uint32_t batch, uint32_t row,
                                  uint32_t n_begin, uint32_t n_end) {
  static_assert(kCtaRows == kTileRows, "a CTA has all rows of a tile of scales");
  if (params.nvfp4.scale_ld != 0) return;
  for (int product = 0; product < (params.combine.side_by_side ? 2 : 1); ++product) {
    const Columns columns = columns_of(params, product);
    for (uint32_t col = n_begin; col < n_end && col < columns.end; col += kBlock)
      store_scale(params, batch, row, (col + columns.shift) / kBlock, 0);
  }
}

// The outputs of one product of a row that exists, from column n_begin on.
template <OutputType kOutput>
DUALGEMM_DEVICE void store_product(const Params& params, const OutputRows& rows, uint32_t row,
                                   uint32_t n_begin, int product, float (&outputs)[kEpilogueCols]) {
  const Columns columns = columns_of(params, product);
  if (n_begin >= columns.end) return;
  const uint32_t col = n_begin + columns.shift;
  if constexpr (kOutput == OutputType::kE2M1) {
    static_assert(kEpilogueCols == kBlock);
    store_block(params, rows, row, col / kBlock, outputs);
  } else {
    constexpr int kBytes = bytes_of(kOutput);
    uint8_t* const to = params.d + rows.batch * params.d_batch_bytes + row * params.d_row_bytes +
                        static_cast<uint64_t>(col) * kBytes;
    const auto valid = static_cast<int>(columns.end - n_begin);
    if (params.combine.residual != nullptr) {
#pragma unroll
      for (int i = 0; i < kEpilogueCols; ++i) {
        if (i < valid) outputs[i] = with_residual(params, kOutput, to + i * kBytes, outputs[i]);
      }
    }
    store_row<kOutput>(to, outputs, valid);
  }
}

// Both accumulators of a row in kEpilogueCols columns, from column n_begin on: the rest of the way
// to D. By whole warps; the rows need not exist. `expert`: whose biases.
template <OutputType kOutput>
DUALGEMM_DEVICE void finish_columns(const Params& params, const RowScales& scales, uint32_t expert,
                                    const OutputRows& rows, uint32_t row, uint32_t n_begin,
                                    float (&g)[kEpilogueCols], float (&u)[kEpilogueCols]) {
#pragma unroll
  for (int i = 0; i < kEpilogueCols; ++i) {
    g[i] = g[i] * scales.alpha_gate * scales.row;
    u[i] = u[i] * scales.alpha_up * scales.row;
  }
  add_row_bias(params.bias, expert * params.bias.stride + n_begin, n_begin, params.n, g, u);
  for_many_outputs<8>(params, g, u, [&](int product, float(&outputs)[kEpilogueCols]) {
    if (row < rows.end) store_product<kOutput>(params, rows, row, n_begin, product, outputs);
  });
  __syncwarp();
}

// The same without groups.
template <OutputType kOutput>
DUALGEMM_DEVICE void finish_columns(const Params& params, const RowScales& scales, uint32_t batch,
                                    uint32_t row, uint32_t n_begin, float (&g)[kEpilogueCols],
                                    float (&u)[kEpilogueCols]) {
  finish_columns<kOutput>(params, scales, batch, rows_of_batch(params, batch), row, n_begin, g, u);
}

}  // namespace dualgemm::cuda::blackwell
