// Factors of a case that are not one for all: alphas for each batch, a scale for each row of A.
#pragma once

#include <cstdint>

#include "support/inputs.hpp"

namespace dualgemm::test {

inline void add_alphas(RandomCase& data, Rng& rng) {
  for (int64_t l = 0; l < data.problem.l; ++l) {
    data.alpha_gate_per_batch.push_back(rng.uniform(0.25f, 2.0f));
    data.alpha_up_per_batch.push_back(rng.uniform(-2.0f, 2.0f));
  }
}

inline void add_alphas_and_row_scales(RandomCase& data, Rng& rng) {
  const Problem& p = data.problem;
  add_alphas(data, rng);
  const int64_t batches = p.grouping == Grouping::kContiguous ? 1 : p.l;  // of A
  for (int64_t row = 0; row < batches * p.m; ++row)
    data.a_row_scale.push_back(rng.uniform(0.5f, 2.0f));
}

}  // namespace dualgemm::test
