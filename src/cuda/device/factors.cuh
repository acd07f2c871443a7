// What sums are multiplied with before the activation, and what is added then. Params: a kernel's,
// set by set_epilogue().
#pragma once

#include <cstdint>

#include "cuda/device/bias.hpp"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

struct Alphas {
  float gate, up;
};

template <class Params>
DUALGEMM_DEVICE Alphas alphas_of(const Params& params, uint32_t batch) {
  return {
      params.alpha_gate_per_batch == nullptr ? params.alpha_gate
                                             : params.alpha_gate_per_batch[batch],
      params.alpha_up_per_batch == nullptr ? params.alpha_up : params.alpha_up_per_batch[batch]};
}

// The scale of a row of A that exists.
template <class Params>
DUALGEMM_DEVICE float row_scale_of(const Params& params, uint32_t batch, uint32_t row) {
  return params.a_row_scale == nullptr
             ? 1.0f
             : params.a_row_scale[static_cast<uint64_t>(batch) * params.row_scale_stride + row];
}

DUALGEMM_DEVICE float load_bias(const void* bias, bool bf16, int64_t index) {
  return bf16 ? __uint_as_float(uint32_t{static_cast<const uint16_t*>(bias)[index]} << 16)
              : static_cast<const float*>(bias)[index];
}

// Adds the biases to kCount outputs in one column of D, which exists: one addition each, whose
// rounding is its own (no fused multiply-add).
template <class Params, int kCount>
DUALGEMM_DEVICE void add_column_bias(const Params& params, uint32_t batch, uint32_t col,
                                     float (&g)[kCount], float (&u)[kCount]) {
  if (params.bias.gate == nullptr) return;
  const int64_t index = batch * params.bias.stride + col;
  const float gate = load_bias(params.bias.gate, params.bias.bf16, index);
  const float up = load_bias(params.bias.up, params.bias.bf16, index);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    g[i] = __fadd_rn(g[i], gate);
    u[i] = __fadd_rn(u[i], up);
  }
}

// Adds the biases to neighbouring outputs of a row, the first one in column `first` of `n`;
// `index`: of that column's biases.
template <int kCount, class Column>
DUALGEMM_DEVICE void add_row_bias(const BiasParams& bias, int64_t index, Column first, Column n,
                                  float (&g)[kCount], float (&u)[kCount]) {
  if (bias.gate == nullptr) return;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (first + i >= n) break;
    g[i] = __fadd_rn(g[i], load_bias(bias.gate, bias.bf16, index + i));
    u[i] = __fadd_rn(u[i], load_bias(bias.up, bias.bf16, index + i));
  }
}

}  // namespace dualgemm::cuda
