// What sums are multiplied with before the activation. Params: a kernel's, set by set_epilogue().
#pragma once

#include <cstdint>

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

// Of a row of A that exists.
template <class Params>
DUALGEMM_DEVICE float row_scale_of(const Params& params, uint32_t batch, uint32_t row) {
  return params.a_row_scale == nullptr
             ? 1.0f
             : params.a_row_scale[static_cast<uint64_t>(batch) * params.m + row];
}

}  // namespace dualgemm::cuda
