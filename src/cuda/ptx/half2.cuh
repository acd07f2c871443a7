// Arithmetic on two 16-bit numbers in one word. PTX ISA 9.0, "Half Precision Floating Point
// Instructions: mul", "cvt".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// mul.rn.f16x2 d, a, b;      PTX ISA 4.2, sm_53, "mul": subnormals count
DUALGEMM_DEVICE uint32_t mul_f16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// mul.rn.bf16x2 d, a, b;      PTX ISA 7.8, sm_90, "mul": subnormals count
DUALGEMM_DEVICE uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// cvt.rn.f16x2.e4m3x2 d, pair;      PTX ISA 7.8, sm_89, "cvt": two E4M3 numbers, the first in the
// low byte; exact, NaN stays NaN
DUALGEMM_DEVICE uint32_t cvt_f16x2_e4m3x2(uint16_t pair) {
  uint32_t d;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(d) : "h"(pair));
  return d;
}

// cvt.f32.f16 d, a;      PTX ISA 1.0, "cvt": exact
DUALGEMM_DEVICE float cvt_f32_f16(uint16_t a) {
  float d;
  asm("cvt.f32.f16 %0, %1;" : "=f"(d) : "h"(a));
  return d;
}

// abs.f16x2 d, a;      PTX ISA 6.5, sm_53, "abs": NaN stays NaN. Free as part of a multiplication.
DUALGEMM_DEVICE uint32_t abs_f16x2(uint32_t a) {
  uint32_t d;
  asm("abs.f16x2 %0, %1;" : "=r"(d) : "r"(a));
  return d;
}

// Both halves of `d` are one half of `a`. mov unpacks and packs ("mov"): the compiler then chooses
// the half in the instruction that uses it.
DUALGEMM_DEVICE uint32_t broadcast_low(uint32_t a) {
  uint32_t d;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\nmov.b32 %0, {low, low};\n}\n"
      : "=r"(d)
      : "r"(a));
  return d;
}
DUALGEMM_DEVICE uint32_t broadcast_high(uint32_t a) {
  uint32_t d;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\nmov.b32 %0, {high, high};\n}\n"
      : "=r"(d)
      : "r"(a));
  return d;
}

}  // namespace dualgemm::cuda::ptx
