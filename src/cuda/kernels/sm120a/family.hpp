// The block-scaled mma.sync kernel as a plan's choice.
#pragma once

#include "cuda/kernels/common/family.hpp"

namespace dualgemm::cuda::sm120a {

extern const KernelFamily kFamily;

}  // namespace dualgemm::cuda::sm120a
