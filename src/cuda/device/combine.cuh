// Where the products of a kernel's tile stand in D, and what is added to them there. Params: a
// kernel's, set by set_epilogue().
#pragma once

#include <cstdint>

#include "cuda/device/activation.cuh"
#include "cuda/device/combine.hpp"
#include "cuda/ptx/half2.cuh"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

// Column c of a product is column c + shift of D, if c < end.
struct Columns {
  uint32_t shift, end;
};

// product: 0, or of two that stand side by side 0 (Gate) and 1 (Up).
template <class Params>
DUALGEMM_DEVICE Columns columns_of(const Params& params, int product) {
  if (!params.combine.side_by_side) return {0, params.n};
  return product == 0 ? Columns{0, params.combine.up_column}
                      : Columns{params.combine.up_column, params.n};
}

// Both products of a kernel's epilogue, each with its alpha and bias, become outputs one after the
// other: store(product, outputs) is given those of product 0 and, where two stand side by side, of
// product 1. One copy of the instructions that activate serves all: with one for each product, or
// with both outputs kept to the end, the kernels with few registers to spare spill.
template <class Params, int kCount, class Store>
DUALGEMM_DEVICE void for_outputs(const Params& params, float (&g)[kCount], float (&u)[kCount],
                                 const Store& store) {
  const bool two = params.combine.side_by_side;
#pragma unroll 1
  for (int product = 0;; ++product) {
    if (!two || params.combine.activates_each) activate_one_silu_first(params.act, g);
    if (!two) multiply_by_up(params.act, g, u);
    store(product, g);
    if (!two || product == 1) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) g[i] = u[i];
  }
}

// The same where registers are fewer still: kAtATime elements are activated at a time.
template <int kAtATime, class Params, int kCount, class Store>
DUALGEMM_DEVICE void for_many_outputs(const Params& params, float (&g)[kCount], float (&u)[kCount],
                                      const Store& store) {
  const bool two = params.combine.side_by_side;
#pragma unroll 1
  for (int product = 0;; ++product) {
    if (!two || params.combine.activates_each) {
#pragma unroll 1
      for (int turn = 0; turn < kCount / kAtATime; ++turn) {  // registers have no index: they move
        float part[kAtATime];
#pragma unroll
        for (int i = 0; i < kAtATime; ++i) part[i] = g[i];
        activate_one(params.act, part);
#pragma unroll
        for (int i = 0; i < kCount; ++i)
          g[i] = i + kAtATime < kCount ? g[i + kAtATime] : part[i + kAtATime - kCount];
      }
    }
    if (!two) multiply_by_up(params.act, g, u);
    store(product, g);
    if (!two || product == 1) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) g[i] = u[i];
  }
}

// An element of D's type, which is not kE2M1.
DUALGEMM_DEVICE float load_element(OutputType type, const uint8_t* from) {
  if (type == OutputType::kF32) return *reinterpret_cast<const float*>(from);
  const uint32_t half = *reinterpret_cast<const uint16_t*>(from);
  if (type == OutputType::kBF16) return __uint_as_float(half << 16);
  return ptx::cvt_f32_f16(static_cast<uint16_t>(half));
}

// What is stored at `to`, an element of D: the residual is added in one rounding of its own.
template <class Params>
DUALGEMM_DEVICE float with_residual(const Params& params, OutputType type, const uint8_t* to,
                                    float value) {
  if (params.combine.residual == nullptr) return value;
  return __fadd_rn(value, load_element(type, params.combine.residual + (to - params.d)));
}

}  // namespace dualgemm::cuda
