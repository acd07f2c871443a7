// The mma.sync kernels as a plan's choice.
#pragma once

#include <vector>

#include "cuda/kernels/common/family.hpp"
#include "cuda/kernels/sm80/launch.hpp"

namespace dualgemm::cuda::sm80 {

extern const KernelFamily kFamily;

// For strategies of several passes: the compiled kernels for one of them; the passes of a strategy
// are compiled with the same tiles.
KernelShape shape_of(const Config& config, const Division& division = {});
std::vector<KernelShape> shapes_for(const InstanceRequest& request);
// The kernel that the plan names, or that it is not compiled.
Expected<const Instance*> instance_of(const Plan& plan, Pass pass);

}  // namespace dualgemm::cuda::sm80
