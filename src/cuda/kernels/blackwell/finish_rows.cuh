// From the sums of some rows of D, a lane one column of both products, to D: for the kernels whose
// MMA has weights in the place of A. Params: a kernel's, set by set_epilogue(), with `output`.
#pragma once

#include <cstdint>

#include "cuda/device/combine.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/common/store_nvfp4.cuh"

namespace dualgemm::cuda::blackwell {

// What the sums of one column are multiplied with, and what is added. Read while MMAs run.
struct ColumnFactors {
  Alphas alphas;
  float bias_gate, bias_up;
};

template <class Params>
DUALGEMM_DEVICE ColumnFactors factors_of(const Params& params, uint32_t batch, uint32_t col) {
  // x + -0 is x, with its sign.
  ColumnFactors factors{alphas_of(params, batch), -0.0f, -0.0f};
  if (params.bias.gate != nullptr && col < params.n) {
    const int64_t index = batch * params.bias.stride + col;
    factors.bias_gate = load_bias(params.bias.gate, params.bias.bf16, index);
    factors.bias_up = load_bias(params.bias.up, params.bias.bf16, index);
  }
  return factors;
}

// D as NVFP4: row `row`, which exists, of the block whose 16 columns these 16 lanes have. The block
// need not exist.
template <class Params>
DUALGEMM_DEVICE void store_block(const Params& params, const OutputRows& rows, uint32_t row,
                                 uint32_t block, float x) {
  uint32_t amax = magnitude_bits(x);
#pragma unroll
  for (int distance = 1; distance < kBlock; distance *= 2)
    amax = max(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, distance));
  const BlockEncoder encoder = encoder_of(amax, params.nvfp4.quantize);
  const uint32_t lane = threadIdx.x % kBlock;
  uint32_t word = encode_value(encoder, x) << (4 * (lane % 8));
#pragma unroll
  for (int distance = 1; distance < 8; distance *= 2)
    word |= __shfl_xor_sync(0xFFFFFFFFu, word, distance);
  if (block < params.nvfp4.blocks) {
    if (lane % 8 == 0) store_codes(params, rows.batch, row, block, lane / 8, word);
    if (lane == 1) store_scale(params, rows.batch, row + rows.scale_shift, block, encoder.scale);
  }
}

// Zeros for the rows of D's last scale tile that do not exist, in 32 columns: by the warp that
// calls with the last row among `first` .. first + count - 1.
template <class Params>
DUALGEMM_DEVICE void clear_scales(const Params& params, const OutputRows& rows, uint32_t first,
                                  uint32_t count, uint32_t first_col) {
  for (int product = 0; product < (params.combine.side_by_side ? 2 : 1); ++product) {
    const Columns columns = columns_of(params, product);
#pragma unroll 1
    for (uint32_t col = first_col; col < first_col + 32; col += kBlock)
      clear_scales_below(params, rows, first, count, block_of(params, columns, col));
  }
}

// Stores kRows rows of one product from `first` on, of which those below rows.end exist.
template <class Params, int kRows>
DUALGEMM_DEVICE void store_rows(const Params& params, const OutputRows& rows, uint32_t first,
                                uint32_t col, int product, const float (&outputs)[kRows]) {
  const Columns columns = columns_of(params, product);
  if (params.output == OutputType::kE2M1) {
    const uint32_t block = block_of(params, columns, col);
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      if (first + i < rows.end) store_block(params, rows, first + i, block, outputs[i]);
    }
    return;
  }
  if (col >= columns.end) return;
  uint8_t* to = params.d + rows.batch * params.d_batch_bytes + first * params.d_row_bytes +
                static_cast<uint64_t>(col + columns.shift) * bytes_of(params.output);
#pragma unroll
  for (uint32_t i = 0; i < kRows; ++i, to += params.d_row_bytes) {
    if (first + i < rows.end)
      store_element(params.output, to, with_residual(params, params.output, to, outputs[i]));
  }
}

// From sums to D. g: Gate's in, the first product's outputs out; u: Up's.
template <class Params, int kRows>
DUALGEMM_DEVICE void finish_rows(const Params& params, const OutputRows& rows, uint32_t first,
                                 uint32_t col, const ColumnFactors& factors, float (&g)[kRows],
                                 float (&u)[kRows]) {
#pragma unroll
  for (uint32_t i = 0; i < kRows; ++i) {
    const float row_scale =
        first + i < rows.end ? row_scale_of(params, rows.batch, first + i) : 1.0f;
    g[i] = __fadd_rn(g[i] * factors.alphas.gate * row_scale, factors.bias_gate);
    u[i] = __fadd_rn(u[i] * factors.alphas.up * row_scale, factors.bias_up);
  }
  for_outputs(params, g, u, [&](int product, float(&outputs)[kRows]) {
    store_rows(params, rows, first, col, product, outputs);
    __syncwarp();
  });
}

}  // namespace dualgemm::cuda::blackwell
