// The special function unit and packed conversions. PTX ISA 9.0, "ex2", "rcp", "cvt".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// ex2.approx.ftz.f32 d, x;      PTX ISA 1.4, "ex2": 2^x, relative error at most 2^-22; subnormal
// operands and results are zero; 2^-inf = 0, 2^inf = inf
DUALGEMM_DEVICE float ex2_approx_ftz(float x) {
  float d;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
  return d;
}

// rcp.approx.ftz.f32 d, x;      PTX ISA 1.4, "rcp": 1/x, at most 1 ulp; subnormals are zero;
// 1/inf = 0
DUALGEMM_DEVICE float rcp_approx_ftz(float x) {
  float d;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
  return d;
}

// cvt.rn.f16x2.f32 d, high, low;      PTX ISA 7.0, sm_80, "cvt": nearest even, overflow is infinity
DUALGEMM_DEVICE uint32_t cvt_f16x2(float low, float high) {
  uint32_t d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

// cvt.rn.bf16x2.f32 d, high, low;      PTX ISA 7.0, sm_80, "cvt"
DUALGEMM_DEVICE uint32_t cvt_bf16x2(float low, float high) {
  uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

}  // namespace dualgemm::cuda::ptx
