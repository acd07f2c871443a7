// The kernel for few rows as a plan's choice.
#pragma once

#include "cuda/kernels/common/family.hpp"

namespace dualgemm::cuda::sm90a_skinny {

extern const KernelFamily kFamily;

}  // namespace dualgemm::cuda::sm90a_skinny
