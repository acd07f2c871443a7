// The oracle: the dual GEMM in double precision, element by element, as its definition says.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::reference {

// One product sum over k of a*w, before alpha and row scale, with what error bounds need.
struct Accumulator {
  double value = 0.0;
  double abs_sum = 0.0;  // sum of |a*w|
  // Sum over the 16-blocks of |the sum up to and with that block|: what is rounded when blocks are
  // added in ascending k.
  double running_sum = 0.0;
  // At least the largest product of two block scales, each counted as 2^-6 if it is smaller (the
  // exponent of subnormal scales): what aligns the terms of a tensor core.
  double scale_product = 0.0;
};

// kSideBySide: one product stands in each column of D, and it, its alpha and bias are `gate`'s and
// g here, whether Gate or Up is multiplied; the members of `up` are idle.
struct Element {
  Accumulator gate, up;
  double alpha_gate = 1.0, alpha_up = 1.0, row_scale = 1.0;
  double bias_gate = -0.0, bias_up = -0.0;  // -0: adding it changes nothing, not even a -0
  double g = 0.0, u = 0.0;                  // alpha * row_scale * product + bias
  double residual = -0.0;
  double d = 0.0;  // act(g) * u, or g + residual; not rounded to D's type
};

// rows x cols elements of D, row-major, of one group; row_begin counts from the group's first row.
// Precondition: validated problem and buffers, both weights given.
std::vector<Element> exact_tile(const core::ResolvedProblem& problem, const Buffers& buffers,
                                const core::RowGroup& group, int64_t row_begin, int64_t rows,
                                int64_t col_begin, int64_t cols, int threads = 0);

// Computes D (and d_scales) in D's type. Buffers::prepared is ignored: both weights must be given.
// threads, here and above: 0 = all usable cores.
Status dual_gemm(const Problem& problem, const Buffers& buffers, int threads = 0);

}  // namespace dualgemm::reference
