// An activation as kernels get it. Apart from the formulas, so that code for one instruction set
// can include it: nothing here is ever compiled into a function of its own.
#pragma once

#include <limits>

#include "dualgemm/types.hpp"

namespace dualgemm::core {

// The kinds of alpha, beta and limit.
constexpr bool takes_parameters(ActivationKind kind) noexcept {
  return kind == ActivationKind::kClampedSwiglu || kind == ActivationKind::kSwigluOai;
}

// An activation with the kind's defaults in place of what was not given. Kernels see only this one.
struct ResolvedActivation {
  // From any Activation, also one that validate() refuses. Implicit: it is the only meaning.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr ResolvedActivation(const Activation& act) noexcept
      : kind(act.kind),
        alpha(act.alpha.value_or(oai(act) ? 1.702f : 1.0f)),
        beta(act.beta.value_or(oai(act) ? 1.0f : 0.0f)),
        limit(act.limit.value_or(oai(act) ? 7.0f : std::numeric_limits<float>::infinity())) {}

  ActivationKind kind;
  float alpha, beta, limit;

 private:
  static constexpr bool oai(const Activation& act) noexcept {
    return act.kind == ActivationKind::kSwigluOai;
  }
};

}  // namespace dualgemm::core
