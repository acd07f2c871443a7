// One product as the dual product of the two halves of its weights, without any check.
#pragma once

#include "dualgemm/linear.hpp"

namespace dualgemm::core {

// What the two share, for the rules that they share: both weights are W, n is W's.
Problem shared_part(const LinearProblem& problem);

// Where Up begins, in W's rows and in D's columns. Half of them, but at a place where a panel of
// scales begins: 128 rows of swizzled ones, and 16 columns of a quantised D.
int64_t first_row_of_up(int64_t n, ScaleLayout scale_layout) noexcept;

// As dualgemm::dual_problem() and dual_buffers(), with Up from this row on. Precondition: the
// former would be ok.
Problem dual_problem(const LinearProblem& problem, int64_t first_row_of_up) noexcept;
Buffers dual_buffers(const LinearProblem& problem, const LinearBuffers& buffers,
                     int64_t first_row_of_up) noexcept;

}  // namespace dualgemm::core
