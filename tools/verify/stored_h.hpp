// What a dual product in double precision stores, and what a backend may have stored instead.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "reference/bound.hpp"

namespace dualgemm::verify {

// H of one group's rows: rows x n, as the next product reads them, without the global scale.
struct StoredH {
  int64_t rows = 0, cols = 0;
  std::vector<double> value;   // NaN or infinite where the definition is
  std::vector<double> moved;   // at least |what may be there - value|; infinite: anything
  std::vector<double> scales;  // of rows x n/16 blocks, the largest that may be there; NVFP4 only
};

// Preconditions: those of reference::exact_tile().
StoredH stored_h(const core::ResolvedProblem& problem, const Buffers& buffers,
                 const core::RowGroup& group, reference::Accumulation accumulation);

}  // namespace dualgemm::verify
