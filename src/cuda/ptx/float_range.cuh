// Floating-point instructions with a range: results cut to 0 .. 1, and a maximum that keeps NaN.
// PTX ISA 9.0, "Floating Point Instructions: add", "max".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// add.rn.sat.f32 d, a, b;      PTX ISA 1.0, "add": NaN becomes +0
DUALGEMM_DEVICE float add_sat(float a, float b) {
  float d;
  asm("add.rn.sat.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
  return d;
}

// max.NaN.f32 d, a, b;      PTX ISA 7.0, sm_80, "max": NaN if one of them is
DUALGEMM_DEVICE float max_nan(float a, float b) {
  float d;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
  return d;
}

// max.NaN.f16x2 d, a, b;      PTX ISA 7.0, sm_80, "max": in each half, NaN if one of them is
DUALGEMM_DEVICE uint32_t max_nan_f16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// max.NaN.bf16x2 d, a, b;      PTX ISA 7.0, sm_80: the same of bf16
DUALGEMM_DEVICE uint32_t max_nan_bf16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// abs.bf16x2 d, a;      PTX ISA 7.0, sm_80, "abs"
DUALGEMM_DEVICE uint32_t abs_bf16x2(uint32_t a) {
  uint32_t d;
  asm("abs.bf16x2 %0, %1;" : "=r"(d) : "r"(a));
  return d;
}

}  // namespace dualgemm::cuda::ptx
