// Which of the compiled kernels a plan gets: the usual choice, or what the caller demands.
#pragma once

#include <span>

#include "plan/strategy.hpp"

namespace dualgemm::cuda {

// A compiled kernel as a plan names it; its grid is not known yet.
struct KernelChoice {
  KernelId kernel{};
  KernelShape shape;
};

// `usual` if it satisfies the constraints, else the first of `compiled` that does. The error lists
// those that there are for the problem.
Expected<KernelChoice> choose_kernel(std::span<const KernelChoice> compiled,
                                     const KernelChoice& usual, const PlanConstraints& constraints);

void fill_in(Plan& plan, const KernelChoice& choice);

}  // namespace dualgemm::cuda
