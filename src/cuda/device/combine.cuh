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

// Both products, each with its alpha and bias, become outputs: g the first one's, u the second's.
// act(x) * 1 has the bits of act(x). kSiluFirst: as activate_all_silu_first().
template <bool kSiluFirst, class Params, int kCount>
DUALGEMM_DEVICE void combine(const Params& params, float (&g)[kCount], float (&u)[kCount]) {
  if (!params.combine.side_by_side) {
    if constexpr (kSiluFirst) return activate_all_silu_first(params.act, g, u);
    return activate_all(params.act, g, u);
  }
  if (!params.combine.activates_each) return;
  float ones[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) ones[i] = 1.0f;
#pragma unroll 1
  for (int product = 0; product < 2; ++product) {  // the same code for both
    activate_all(params.act, g, ones);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float first = g[i];
      g[i] = u[i], u[i] = first;
    }
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
