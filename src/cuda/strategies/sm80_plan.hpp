// The part of planning that all strategies with mma.sync kernels share.
#pragma once

#include "cuda/kernels/sm80/launch.hpp"
#include "plan/strategy.hpp"

namespace dualgemm::cuda {

// The numbers of the kernel for `pass`; all passes are compiled with the same tiles.
Status plan_sm80(Plan& plan, sm80::Pass pass, const PlanConstraints& constraints);

// The kernel that the plan names, or that it is not compiled.
Expected<const sm80::Instance*> find_sm80(const Plan& plan, sm80::Pass pass);

}  // namespace dualgemm::cuda
