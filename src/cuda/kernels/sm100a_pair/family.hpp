// The kernels of pairs of CTAs as a plan's choice.
#pragma once

#include "cuda/kernels/common/family.hpp"

namespace dualgemm::cuda::sm100a_pair {

extern const KernelFamily kFamily;            // a pair per tile
extern const KernelFamily kPersistentFamily;  // a pair does tile after tile

// CTAs of a persistent grid at the most: two for each pair that the GPU has at once, or as the
// constraints say.
Expected<int64_t> most_pair_ctas(const PlanConstraints& constraints, const DeviceCaps& caps);

}  // namespace dualgemm::cuda::sm100a_pair
