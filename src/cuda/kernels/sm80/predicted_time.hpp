// How long a launch of fused should take on a GPU where nothing was measured.
#pragma once

#include <optional>

#include "cuda/kernels/common/family.hpp"

namespace dualgemm::cuda::sm80 {

// From the times of one H200 (docs/performance/h200_sm80.md), which instructions take: as many
// clocks of an SM here, with this GPU's SMs and clock, or what its memory takes for the weights, or
// its tensor cores for the products. Not counted: the launch that adds sums of parts of k.
// none: the GPU is not described in cuda/machine.
std::optional<PredictedTime> predicted_time(const Plan& plan, const DeviceCaps& caps);

}  // namespace dualgemm::cuda::sm80
