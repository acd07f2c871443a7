// Where the products of a kernel's tile stand in D, and what is added to them there. Params: a
// kernel's, set by set_epilogue().
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
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
