// The kernels for 16-bit A as a plan's choice.
#pragma once

#include "cuda/kernels/common/family.hpp"

namespace dualgemm::cuda::sm100a_w4a16 {

extern const KernelFamily kFamily;            // a cluster per tile
extern const KernelFamily kPersistentFamily;  // a CTA does tile after tile
extern const KernelFamily kGroupsFamily;      // the same, of groups of experts

}  // namespace dualgemm::cuda::sm100a_w4a16
