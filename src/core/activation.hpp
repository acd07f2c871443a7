// Every activation in double, written as its definition: the meaning that all backends are judged
// by; and how far an FP32 evaluation may lie from it. g = alpha_gate * Gate product, u = alpha_up *
// Up product.
#pragma once

#include <cmath>
#include <numbers>

#include "core/resolved_activation.hpp"

namespace dualgemm::core {

inline double sigmoid(double x) noexcept { return 1.0 / (1.0 + std::exp(-x)); }

// Comparisons with NaN are false, so these return a NaN x unchanged (std::min would drop it).
inline double clamp_above(double x, double limit) noexcept { return x > limit ? limit : x; }
inline double clamp_below(double x, double limit) noexcept { return x < limit ? limit : x; }

inline double activate(const ResolvedActivation& act, double g, double u) noexcept {
  switch (act.kind) {
    case ActivationKind::kSilu:
      return g * sigmoid(g) * u;
    case ActivationKind::kClampedSwiglu:
    case ActivationKind::kSwigluOai: {
      const double limit = act.limit;
      const double gc = clamp_above(g, limit);
      const double uc = clamp_below(clamp_above(u, limit), -limit);
      return gc * sigmoid(act.alpha * gc) * (uc + act.beta);
    }
    case ActivationKind::kGeluErf:
      return 0.5 * g * std::erfc(-g / std::sqrt(2.0)) * u;
    case ActivationKind::kGeluTanh: {
      const double z = std::sqrt(2.0 / std::numbers::pi) * (g + 0.044715 * g * g * g);
      return g * sigmoid(2.0 * z) * u;  // 0.5 * (1 + tanh(z)) = sigmoid(2z), without cancellation
    }
    case ActivationKind::kRelu2: {
      const double positive = clamp_below(g, 0.0);
      return positive * positive * u;
    }
    case ActivationKind::kSigmoid:
      return sigmoid(g) * u;
    case ActivationKind::kIdentity:
      return g * u;
  }
  return std::nan("");  // not reached: validate() refuses other kinds
}

// ---- The bound of docs/numerics.md, "Activation"

inline constexpr double kRound = 0x1p-24;  // u: largest relative error of one rounding to FP32
// What exp, sigmoid, erf and tanh of a backend may lose, in u. A contract, not a measurement:
// docs/numerics.md lists what the backends achieve.
inline constexpr double kFunctionRounds = 16.0;
inline constexpr double kSigmoidFloor = 0x1p-124;  // below this a sigmoid may be flushed to 0
// At least |f'| of silu (1.100), gelu_erf (1.129), gelu_tanh (1.129).
inline constexpr double kSlope = 1.13;

// A value and the bound on its error.
struct Bounded {
  double value, error;
};

// x * sigmoid(alpha * x).
inline Bounded sigmoid_weighted(double alpha, Bounded x) noexcept {
  const double argument = alpha * x.value, weight = sigmoid(argument);
  const double value = x.value * weight;
  // Rounding the argument moves log(sigmoid) by 1 - sigmoid times its absolute error.
  const double rounds = kFunctionRounds + 2.0 * (1.0 - weight) * std::abs(argument);
  return {value, kSlope * x.error + rounds * kRound * std::abs(value) +
                     kSigmoidFloor * (std::abs(x.value) + x.error)};
}

// act(g), the factor of D that depends on g alone.
inline Bounded gate_factor(const ResolvedActivation& act, Bounded g) noexcept {
  const double x = g.value;
  switch (act.kind) {
    case ActivationKind::kSilu:
      return sigmoid_weighted(1.0, g);
    case ActivationKind::kClampedSwiglu:
    case ActivationKind::kSwigluOai:  // a clamp is exact and brings neighbours no further apart
      return sigmoid_weighted(act.alpha, {clamp_above(x, act.limit), g.error});
    case ActivationKind::kGeluErf:
    case ActivationKind::kGeluTanh:  // 1 + erf and 1 + tanh may cancel: absolute error of a few u
      return {activate(act, x, 1.0),
              kSlope * g.error + kFunctionRounds * kRound * (std::abs(x) + g.error)};
    case ActivationKind::kRelu2: {
      const double positive = clamp_below(x, 0.0), value = positive * positive;
      return {value, (2.0 * positive + g.error) * g.error + 2.0 * kRound * value};
    }
    case ActivationKind::kSigmoid: {
      const double value = sigmoid(x);
      return {value, 0.25 * g.error + kFunctionRounds * kRound * value + kSigmoidFloor};
    }
    case ActivationKind::kIdentity:
      break;
  }
  return g;
}

}  // namespace dualgemm::core
