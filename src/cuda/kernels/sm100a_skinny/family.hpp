// The kernels for few rows as a plan's choice.
#pragma once

#include "cuda/kernels/common/family.hpp"

namespace dualgemm::cuda::sm100a_skinny {

extern const KernelFamily kFamily;            // a CTA per tile
extern const KernelFamily kPersistentFamily;  // a CTA does tile after tile
extern const KernelFamily kGroupsFamily;      // the same, of groups of experts

}  // namespace dualgemm::cuda::sm100a_skinny
