// Problems that a test knows to be valid, as strategies take them.
#pragma once

#include "core/checked_problem.hpp"

namespace dualgemm::test {

inline core::CheckedProblem checked(const Problem& problem) {
  return *core::CheckedProblem::of(problem);
}

}  // namespace dualgemm::test
