// Activations to try, from the table of dualgemm/enums.h: a new kind is tried everywhere at once.
#pragma once

#include <limits>
#include <vector>

#include "core/enum_table.hpp"
#include "core/resolved_activation.hpp"

namespace dualgemm::test {

// With parameters that act on ordinary numbers, where the kind takes some.
inline Activation activation_of(ActivationKind kind) {
  if (kind == ActivationKind::kSwigluOai) return Activation::swiglu_oai();
  if (!core::takes_parameters(kind)) return {.kind = kind};
  return {.kind = kind, .limit = 1.5f};
}

// Each kind once, and those with parameters also without clamping.
inline std::vector<Activation> every_activation() {
  std::vector<Activation> all;
  for (const auto& row : core::kEnumRows<ActivationKind>) {
    all.push_back(activation_of(row.value));
    if (!core::takes_parameters(row.value)) continue;
    all.push_back(all.back());
    all.back().limit = std::numeric_limits<float>::infinity();
  }
  return all;
}

template <class Rng>
Activation any_activation(Rng& rng) {
  return activation_of(
      static_cast<ActivationKind>(rng.integer(0, core::kEnumCount<ActivationKind> - 1)));
}

}  // namespace dualgemm::test
