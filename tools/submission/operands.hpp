// A call as the challenge makes it: NVFP4 operands with swizzled 128x4 scales, D in fp16, SiLU, no
// factors, everything tight.
//
// Here and in the files beside this one everything has internal linkage: a static of an inline
// function would be one and the same for all libraries that a process loads.
#pragma once

#include <cstdint>
#include <limits>

#include "cuda/device/activation.hpp"

namespace dualgemm::submission {
namespace {

struct Operands {
  int64_t m, n, k, l;
  // (l, m or n, k/2)
  const uint8_t *a = nullptr, *gate = nullptr, *up = nullptr;
  // (l, ceil(m or n / 128), k/64, 512)
  const uint8_t *a_scales = nullptr, *gate_scales = nullptr, *up_scales = nullptr;
  uint8_t* d = nullptr;  // (l, m, n) of fp16
};

// null, or the rule that is broken. What passes can be multiplied in 64 bits.
const char* check_extents(const Operands& operands) {
  for (const int64_t extent : {operands.m, operands.n, operands.k, operands.l}) {
    if (extent < 1 || extent >= 1 << 20) return "m, n, k and l must be 1 .. 2^20 - 1";
  }
  return operands.k % 64 == 0 ? nullptr : "k must be a multiple of 64";
}

const char* check(const Operands& operands) {
  if (const char* const error = check_extents(operands); error != nullptr) return error;
  for (const uint8_t* address : {operands.a, operands.gate, operands.up, operands.a_scales,
                                 operands.gate_scales, operands.up_scales}) {
    if (address == nullptr || reinterpret_cast<uintptr_t>(address) % 16 != 0)
      return "operands and scales must be at multiples of 16 bytes";
  }
  return operands.d == nullptr ? "d must not be null" : nullptr;
}

// The members that the kernels' Params have in common.
template <class Params>
void set_epilogue(const Operands& operands, Params& params) {
  params.d = operands.d;
  params.d_row_bytes = operands.n * 2;
  params.d_batch_bytes = operands.m * operands.n * 2;
  params.alpha_gate = params.alpha_up = 1.0f;
  params.bias.stride = operands.n;
  params.act = {cuda::ActKind::kSilu, 1.0f, 0.0f, std::numeric_limits<float>::infinity()};
  params.m = params.row_scale_stride = static_cast<uint32_t>(operands.m);
  params.n = static_cast<uint32_t>(operands.n);
}

}  // namespace
}  // namespace dualgemm::submission
