// The activations in FP32. docs/numerics.md, "Error bound", allows their functions 16 u in all;
// ex2.approx (2^-22 = 4 u), rcp.approx (2 u) and the roundings around them stay below 10 u.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/ptx/math.cuh"

namespace dualgemm::cuda {

// exp(x) = 2^(high + low): the product x*log2(e) in two parts, so that a large x costs no accuracy.
// Beyond +-128 the result is inf or 0, and the low part, which may be NaN there, is left out.
DUALGEMM_DEVICE float exp_f32(float x) {
  constexpr float kLog2E = 1.44269502e+0f, kLog2ELow = 1.92596303e-8f, kLn2 = 6.93147182e-1f;
  const float high = x * kLog2E;
  const float low = fmaf(x, kLog2ELow, fmaf(x, kLog2E, -high));
  const float power = ptx::ex2_approx_ftz(high);
  return fabsf(high) < 128.0f ? fmaf(power, low * kLn2, power) : power;
}

DUALGEMM_DEVICE float sigmoid_f32(float x) { return ptx::rcp_approx_ftz(1.0f + exp_f32(-x)); }

// x * sigmoid(scale * x)
DUALGEMM_DEVICE float swish_f32(float x, float scale) { return x * sigmoid_f32(scale * x); }

// min and max that keep NaN.
DUALGEMM_DEVICE float clamp_above(float x, float limit) { return x > limit ? limit : x; }
DUALGEMM_DEVICE float clamp_below(float x, float limit) { return x < limit ? limit : x; }

// An activation is the product of what g alone gives and what u alone gives.
template <ActKind kKind>
DUALGEMM_DEVICE float gate_factor(const ActParams& act, float g) {
  if constexpr (kKind == ActKind::kSilu) {
    return swish_f32(g, 1.0f);
  } else if constexpr (kKind == ActKind::kClampedSwiglu || kKind == ActKind::kSwigluOai) {
    return swish_f32(clamp_above(g, act.limit), act.alpha);
  } else if constexpr (kKind == ActKind::kGeluErf) {
    return 0.5f * g * erfcf(g * -0.70710678f);
  } else if constexpr (kKind == ActKind::kGeluTanh) {  // 0.5*(1 + tanh(z)) = sigmoid(2z)
    return g * sigmoid_f32(1.59576912f * (g + 0.044715f * (g * g * g)));
  } else if constexpr (kKind == ActKind::kRelu2) {
    const float positive = clamp_below(g, 0.0f);
    return positive * positive;
  } else if constexpr (kKind == ActKind::kSigmoid) {
    return sigmoid_f32(g);
  } else {
    static_assert(kKind == ActKind::kIdentity, "a kind without a formula");
    return g;
  }
}

DUALGEMM_DEVICE bool clamps(const ActParams& act) {
  return act.kind == ActKind::kClampedSwiglu || act.kind == ActKind::kSwigluOai;
}
DUALGEMM_DEVICE float clamped_up(const ActParams& act, float u) {
  return clamp_below(clamp_above(u, act.limit), -act.limit) + act.beta;
}

template <ActKind kKind>
DUALGEMM_DEVICE float activate(const ActParams& act, float g, float u) {
  if constexpr (kKind == ActKind::kClampedSwiglu || kKind == ActKind::kSwigluOai) {
    return gate_factor<kKind>(act, g) * clamped_up(act, u);
  } else {
    return gate_factor<kKind>(act, g) * u;
  }
}

// g[i] = gate_factor(g[i]) with the kind chosen once for all elements: a uniform branch.
template <int kCount>
DUALGEMM_DEVICE void activate_one(const ActParams& act, float (&g)[kCount]) {
#define DUALGEMM_ACTIVATE(cpp_name, c_name, number, name, meaning) \
  case ActKind::cpp_name:                                          \
    _Pragma("unroll") for (int i = 0; i < kCount; ++i) g[i] =      \
        gate_factor<ActKind::cpp_name>(act, g[i]);                 \
    break;
  switch (act.kind) { DUALGEMM_ACTIVATION_TABLE(DUALGEMM_ACTIVATE) }
#undef DUALGEMM_ACTIVATE
}

// The same, as activate_all_silu_first().
template <int kCount>
DUALGEMM_DEVICE void activate_one_silu_first(const ActParams& act, float (&g)[kCount]) {
  if (act.kind == ActKind::kSilu) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) g[i] = gate_factor<ActKind::kSilu>(act, g[i]);
  } else {
    activate_one(act, g);
  }
}

// The same products as activate_all()'s, bit for bit, where g is activated: for kernels in which
// products that stand side by side are activated by the same instructions.
template <int kCount>
DUALGEMM_DEVICE void multiply_by_up(const ActParams& act, float (&g)[kCount],
                                    const float (&u)[kCount]) {
  const bool clamp = clamps(act);
#pragma unroll
  for (int i = 0; i < kCount; ++i) g[i] *= clamp ? clamped_up(act, u[i]) : u[i];
}

// g[i] = activate(g[i], u[i]) with the kind chosen once for all elements: a uniform branch.
template <int kCount>
DUALGEMM_DEVICE void activate_all(const ActParams& act, float (&g)[kCount],
                                  const float (&u)[kCount]) {
#define DUALGEMM_ACTIVATE(cpp_name, c_name, number, name, meaning) \
  case ActKind::cpp_name:                                          \
    _Pragma("unroll") for (int i = 0; i < kCount; ++i) g[i] =      \
        activate<ActKind::cpp_name>(act, g[i], u[i]);              \
    break;
  switch (act.kind) { DUALGEMM_ACTIVATION_TABLE(DUALGEMM_ACTIVATE) }
#undef DUALGEMM_ACTIVATE
}

// The same, with a branch to SiLU in front of the jump to the others: a jump through a table costs
// a kernel that ends with it 0.07 us (sm90a_skinny, (4096, 7168), M = 1, H200: 12.21 -> 12.14 us).
template <int kCount>
DUALGEMM_DEVICE void activate_all_silu_first(const ActParams& act, float (&g)[kCount],
                                             const float (&u)[kCount]) {
  if (act.kind == ActKind::kSilu) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) g[i] = activate<ActKind::kSilu>(act, g[i], u[i]);
  } else {
    activate_all(act, g, u);
  }
}

}  // namespace dualgemm::cuda
