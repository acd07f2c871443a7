// The kernel of pairs of CTAs for groups of experts as a plan's choice.
#pragma once

#include "cuda/kernels/common/family.hpp"

namespace dualgemm::cuda::sm100a_pair_groups {

extern const KernelFamily kFamily;

}  // namespace dualgemm::cuda::sm100a_pair_groups
