// The activations in FP32, written so that every compiler vectorises them and every instruction set
// gives the same bits: plain IEEE additions, multiplications and divisions in a fixed order (the
// build forbids contraction), no library call, no branch.
//
// Included by each src/cpu/isa/*.cpp inside its own namespace, so that no copy compiled for a
// larger instruction set can be chosen by the linker for the whole program.
//
// Accuracy against double, measured by tests/unit/cpu/activation_test.cpp, in units of the FP32
// last place where the results are normal: exp_f32 1.0; sigmoid and SiLU 2.3; erfc 7.9 (1 + z^2),
// because the rounding of z^2 acts as an exponent. docs/numerics.md, "Epilogue", has the whole
// table.

inline float bits_to_float(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t float_to_bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

// condition ? value : x, by bits. From conditional expressions GCC 12 makes one more division of
// all lanes for each constant value: SiLU took 42 cycles for 16 lanes where this takes 32 (AVX-512,
// Emerald Rapids, where one division takes 16 cycles of a port, 2026-11-30; other instruction sets
// were not measured).
inline float value_where(bool condition, float value, float x) {
  const uint32_t mask = -static_cast<uint32_t>(condition);
  return bits_to_float((float_to_bits(value) & mask) | (float_to_bits(x) & ~mask));
}

// exp(x): x = n*ln2 + r, |r| <= ln2/2, a polynomial for exp(r), the power of two in two factors so
// that results down to 2^-149 and overflow to infinity come out right. NaN stays NaN.
inline float exp_f32(float x) {
  x = value_where(x > 89.0f, 89.0f, x);
  x = value_where(x < -104.0f, -104.0f, x);
  const float shifted = x * 1.44269504088896341f + 12582912.0f;  // 1.5*2^23: rounds to nearest
  const float n = shifted - 12582912.0f;
  // ln2 in two parts; the first has 9 trailing zero bits so that n*ln2_high is exact.
  const float r = (x - n * 0.693145751953125f) - n * 1.42860682030941723212e-6f;
  float p = 1.9841270e-4f;  // Taylor, 1/7! .. 1/2!: the next term is below 2^-27 for |r| <= ln2/2
  p = p * r + 1.3888889e-3f;
  p = p * r + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 5.0e-1f;
  p = (p * r) * r + r + 1.0f;
  const uint32_t power = float_to_bits(shifted) - float_to_bits(12582912.0f);  // n as an integer
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(power) >> 1);
  const float scale_low = bits_to_float((half + 127u) << 23);
  const float scale_high = bits_to_float((power - half + 127u) << 23);
  return (p * scale_low) * scale_high;
}

inline float sigmoid_f32(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

// x * sigmoid(scale * x)
inline float swish_f32(float x, float scale) { return x / (1.0f + exp_f32(-(scale * x))); }

// erfc(z) with a small relative error for every z: erfc(a) = t*exp(-a^2 + P(t)), t = 1/(1 + a/2),
// the form of Numerical Recipes' erfcc; P is our own fit of log(erfc(a)/t) + a^2 over 0 <= a
// <= 10.2 (degree 9, iteratively reweighted least squares at 400 Chebyshev nodes, largest
// error 4.7e-8).
inline float erfc_f32(float z) {
  const float a = z < 0.0f ? -z : z;
  const float t = 1.0f / (1.0f + 0.5f * a);
  float p = 0.143676996f;
  p = p * t - 0.674198449f;
  p = p * t + 1.14169991f;
  p = p * t - 0.677157462f;
  p = p * t - 0.0951595008f;
  p = p * t + 0.00859222375f;
  p = p * t + 0.0323444121f;
  p = p * t + 0.387056559f;
  p = p * t + 0.998591721f;
  p = p * t - 1.26544642f;
  // exp of the sum would round z^2 to an absolute error of z^2 ulp; two factors keep the polynomial
  // part accurate where it matters (small z).
  const float e = t * (exp_f32(p) * exp_f32(-(a * a)));
  return z < 0.0f ? 2.0f - e : e;
}

// min and max that return the NaN (unlike minps, fminf).
inline float min_keep_nan(float x, float limit) { return x > limit ? limit : x; }
inline float max_keep_nan(float x, float limit) { return x < limit ? limit : x; }

struct SiluOp {
  float operator()(float g, float u) const { return swish_f32(g, 1.0f) * u; }
};
struct SwigluOp {  // clamped SwiGLU and SwiGLU-OAI
  float alpha, beta, limit;
  float operator()(float g, float u) const {
    const float gc = min_keep_nan(g, limit);
    const float uc = max_keep_nan(min_keep_nan(u, limit), -limit);
    return swish_f32(gc, alpha) * (uc + beta);
  }
};
struct GeluErfOp {
  float operator()(float g, float u) const {
    return 0.5f * g * erfc_f32(g * -0.70710678118654752f) * u;
  }
};
struct GeluTanhOp {  // 0.5*g*(1 + tanh(y)) = g*sigmoid(2y)
  float operator()(float g, float u) const {
    const float y = 1.5957691216057308f * (g + 0.044715f * (g * g * g));
    return g / (1.0f + exp_f32(-y)) * u;
  }
};
struct Relu2Op {
  float operator()(float g, float u) const {
    const float positive = max_keep_nan(g, 0.0f);
    return positive * positive * u;
  }
};
struct SigmoidOp {
  float operator()(float g, float u) const { return sigmoid_f32(g) * u; }
};
struct IdentityOp {
  float operator()(float g, float u) const { return g * u; }
};

// alpha * row scale * sum + bias of one row's panel, in this order of roundings.
inline void factored_row(const float* __restrict sums, float alpha, float row_scale,
                         const float* __restrict bias, float* __restrict out) {
  for (int c = 0; c < kPanelN; ++c) out[c] = sums[c] * alpha * row_scale + bias[c];
}

void apply_factors(const float* sums, int64_t stride, int rows, const PanelFactors& factors,
                   const float* row_scale, float* out) {
  for (int r = 0; r < rows; ++r)
    factored_row(sums + r * stride, factors.alpha, row_scale ? row_scale[r] : 1.0f, factors.bias,
                 out + r * kPanelN);
}

template <class Op>
inline void activate_rows(const Op op, const float* p, int64_t stride_p, const float* q,
                          int64_t stride_q, int rows, const PanelFactors& factors_p,
                          const PanelFactors& factors_q, const float* row_scale, float* out) {
  const float alpha_p = factors_p.alpha, alpha_q = factors_q.alpha;
  const float* __restrict bias_p = factors_p.bias;
  const float* __restrict bias_q = factors_q.bias;
  for (int r = 0; r < rows; ++r) {
    const float s = row_scale ? row_scale[r] : 1.0f;
    const float* __restrict pr = p + r * stride_p;
    const float* __restrict qr = q + r * stride_q;
    float* __restrict o = out + r * kPanelN;
    for (int c = 0; c < kPanelN; ++c)
      o[c] = op(pr[c] * alpha_p * s + bias_p[c], qr[c] * alpha_q * s + bias_q[c]);
  }
}

void activate(const core::ResolvedActivation& act, const float* p, int64_t stride_p, const float* q,
              int64_t stride_q, int rows, const PanelFactors& factors_p,
              const PanelFactors& factors_q, const float* row_scale, float* out) {
  const auto rows_with = [&](auto op) {
    activate_rows(op, p, stride_p, q, stride_q, rows, factors_p, factors_q, row_scale, out);
  };
  switch (act.kind) {
    case ActivationKind::kSilu:
      return rows_with(SiluOp{});
    case ActivationKind::kClampedSwiglu:
    case ActivationKind::kSwigluOai:
      return rows_with(SwigluOp{act.alpha, act.beta, act.limit});
    case ActivationKind::kGeluErf:
      return rows_with(GeluErfOp{});
    case ActivationKind::kGeluTanh:
      return rows_with(GeluTanhOp{});
    case ActivationKind::kRelu2:
      return rows_with(Relu2Op{});
    case ActivationKind::kSigmoid:
      return rows_with(SigmoidOp{});
    case ActivationKind::kIdentity:
      return rows_with(IdentityOp{});
  }
}
