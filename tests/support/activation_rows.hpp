// What tests know of each activation apart from the library: one row for each kind, in the order of
// the table in dualgemm/enums.h. Every test of values takes its cases from here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/activation.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::test {

// Computed apart from this code, with 50 digits.
struct KnownValue {
  Activation act;
  double g, u, want;
};

// The largest error of the CPU's FP32 formula for low <= g <= high, in `unit`s of g and of the
// exact result: a row of the table in docs/numerics.md, "Epilogue".
struct DocumentedError {
  double low, high;
  double (*unit)(double g, double f);
  double most;
};

struct ActivationRow {
  Activation tried;                                                   // with parameters, if any
  float (*plain)(const core::ResolvedActivation&, float g, float u);  // the C library's functions
  std::vector<KnownValue> known;
  DocumentedError error;  // most 0: no rounding at all
  uint64_t hash;          // of tests/unit/api/same_bits_test.cpp
};

inline double unit_in_last_place(double, double f) {
  return std::ldexp(1.0, std::max(std::ilogb(f), -126) - 23);
}
inline double unit_times_g(double g, double) { return std::max(0x1p-24 * std::abs(g), 0x1p-149); }
// The rounding of alpha*g alone may cost 2(1 - sigmoid)|alpha*g| u: counted apart.
inline double unit_of_oai(double g, double f) {
  const double argument =
      core::ResolvedActivation(Activation::swiglu_oai()).alpha * core::clamp_above(g, 7.0);
  const double rounding = 2.0 * (1.0 - core::sigmoid(argument)) * std::abs(argument);
  return (1.0 + 0.5 * rounding) * unit_in_last_place(g, f);
}

inline float plain_sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
inline float plain_swiglu(const core::ResolvedActivation& act, float g, float u) {
  g = g > act.limit ? act.limit : g;
  u = u > act.limit ? act.limit : u < -act.limit ? -act.limit : u;
  return g * plain_sigmoid(act.alpha * g) * (u + act.beta);
}

inline std::vector<ActivationRow> activation_rows() {
  using Act = core::ResolvedActivation;
  constexpr double kMost = 3e38, kInfinity = std::numeric_limits<double>::infinity();
  const auto of = [](ActivationKind kind) { return Activation{.kind = kind}; };
  const Activation silu = Activation::silu(), gelu_erf = of(ActivationKind::kGeluErf),
                   gelu_tanh = of(ActivationKind::kGeluTanh), relu2 = of(ActivationKind::kRelu2),
                   sigmoid = of(ActivationKind::kSigmoid), identity = of(ActivationKind::kIdentity);
  return {
      {silu,
       [](const Act&, float g, float u) { return g * plain_sigmoid(g) * u; },
       {{silu, 1.0, 1.0, 0.73105857863000487925},
        {silu, -2.0, 3.0, -0.71521753213270533565},
        {silu, 0.0, 5.0, 0.0}},
       {-87.0, kMost, unit_in_last_place, 2.3},
       0x57ae26fba8769f7du},
      {Activation::clamped_swiglu(7.0f),
       plain_swiglu,
       {{Activation::clamped_swiglu(2.0f), 5.0, 5.0, 3.5231883119115297762},  // 2 sigmoid(2) * 2
        {Activation::clamped_swiglu(2.0f), -5.0, -5.0, 0.066928509242848555594}},  // g from above
       {-87.0, kMost, unit_in_last_place, 2.3},
       0x70fea71f34e10803u},
      {Activation::swiglu_oai(),
       plain_swiglu,
       {{Activation::swiglu_oai(1.5f, 1.0f, 7.0f), 2.0, -9.0, -11.430889521869198629}},
       {-51.0, kMost, unit_of_oai, 2.0},
       0xb30507978db5f444u},
      {gelu_erf,
       [](const Act&, float g, float u) {
         return 0.5f * g * (1.0f + std::erf(g * 0.70710678f)) * u;
       },
       {{gelu_erf, 1.0, 1.0, 0.84134474606854294859},
        {gelu_erf, -3.0, 2.0, -0.0080993881897805671600}},
       {-kMost, kMost, unit_times_g, 4.8},
       0x36bb512886bb8e9cu},
      {gelu_tanh,
       [](const Act&, float g, float u) {
         return 0.5f * g * (1.0f + std::tanh(0.79788456f * (g + 0.044715f * g * g * g))) * u;
       },
       {{gelu_tanh, 1.0, 1.0, 0.84119199060827670478},
        {gelu_tanh, -3.0, 2.0, -0.0072747841635460376757}},
       {-kMost, kMost, unit_times_g, 2.0},
       0xc85d42b5743e8454u},
      {relu2,
       [](const Act&, float g, float u) {
         g = g < 0.0f ? 0.0f : g;
         return g * g * u;
       },
       {{relu2, 3.0, -2.0, -18.0}, {relu2, -3.0, -2.0, 0.0}},
       {-kMost, 1.8e19, unit_in_last_place, 0.5},
       0xa982ea3a77c9d8adu},
      {sigmoid,
       [](const Act&, float g, float u) { return plain_sigmoid(g) * u; },
       {{sigmoid, -1.0, 4.0, 1.0757656854799804830}},
       {-87.0, kInfinity, unit_in_last_place, 2.3},
       0x1d548edd7fa4ad22u},
      {identity,
       [](const Act&, float g, float u) { return g * u; },
       {{identity, -1.5, 4.0, -6.0}},
       {0.0, 0.0, unit_in_last_place, 0.0},
       0x4e9681b7242b85d0u},
  };
}

}  // namespace dualgemm::test
