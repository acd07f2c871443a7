// What no Hopper kernel does; a kernel's supports() adds what only it does not do.
#pragma once

#include "dualgemm/types.hpp"

namespace dualgemm::cuda::hopper {

Status check_problem(const Problem& problem);

}  // namespace dualgemm::cuda::hopper
