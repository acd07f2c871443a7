// What no Hopper kernel does; a kernel's supports() adds what only it does not do.
#pragma once

#include "dualgemm/types.hpp"

namespace dualgemm::cuda::hopper {

Status check_problem(const Problem& problem);

// The refusal of a plan whose shape is none of a kernel's instances.
Status not_compiled(const KernelShape& shape);

}  // namespace dualgemm::cuda::hopper
