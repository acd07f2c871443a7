// A problem that keeps every rule of validate(), with its defaults filled in. There is no other way
// to get one, so that a function that takes it checks nothing again.
#pragma once

#include "core/problem.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::core {

class CheckedProblem {
 public:
  // What validate() says of it, or the problem.
  static Expected<CheckedProblem> of(const Problem& problem);

  const Problem& problem() const noexcept { return resolved_.problem; }
  const ResolvedProblem& resolved() const noexcept { return resolved_; }

 private:
  explicit CheckedProblem(const Problem& problem) noexcept : resolved_(resolve(problem)) {}

  ResolvedProblem resolved_;
};

}  // namespace dualgemm::core
