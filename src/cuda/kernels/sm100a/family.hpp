// The kernel of one CTA per tile as a plan's choice.
#pragma once

#include "cuda/kernels/common/family.hpp"

namespace dualgemm::cuda::sm100a {

extern const KernelFamily kFamily;

}  // namespace dualgemm::cuda::sm100a
