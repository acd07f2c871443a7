// Every activation in double, written as its definition: the meaning that all backends are judged
// by. g = alpha_gate * Gate product, u = alpha_up * Up product.
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

}  // namespace dualgemm::core
