// What a dual product in double precision stores, and what a backend may have stored instead.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "core/quantize_block.hpp"
#include "reference/bound.hpp"

namespace dualgemm::verify {

// H of one group's rows: rows x n, as the next product reads them, without the global scale.
struct StoredH {
  int64_t rows = 0, cols = 0;
  std::vector<double> value;   // NaN or infinite where the definition is
  std::vector<double> moved;   // at least |what may be there - value|; infinite: anything
  std::vector<double> scales;  // of rows x n/16 blocks, the largest that may be there; NVFP4 only
  std::vector<double> row_scales;  // of rows, by which the product is multiplied; empty: 1
};

// To FP32, then to a type of 16 bits, or of 32.
double rounded_to(DataType type, double value);

// The ends of what an element may be in FP32, and the sixteen of a block as NVFP4 with a global
// scale between two: `value` and `moved` are in units of `global`.
struct GlobalRange {
  core::GlobalScale lo, global, hi;
};
void store_block(const double* exact, const reference::Interval* intervals,
                 const GlobalRange& global, double* value, double* moved, double* scale_most);

// Preconditions: those of reference::exact_tile().
StoredH stored_h(const core::ResolvedProblem& problem, const Buffers& buffers,
                 const core::RowGroup& group, reference::Accumulation accumulation);

}  // namespace dualgemm::verify
