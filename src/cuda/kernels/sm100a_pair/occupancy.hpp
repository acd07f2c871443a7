// What the current GPU says of pairs of CTAs.
#pragma once

#include "dualgemm/status.hpp"

namespace dualgemm::cuda::sm100a_pair {

// How many pairs run at once; 0: the GPU cannot run the kernel at all. Every instance takes the
// whole shared memory of two SMs, so all have the same number.
Expected<int> count_pairs();

}  // namespace dualgemm::cuda::sm100a_pair
