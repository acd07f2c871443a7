// The table of kernel families, and the one choice among them.
#pragma once

#include <optional>
#include <span>

#include "cuda/kernels/common/family.hpp"

namespace dualgemm::cuda {

std::span<const KernelFamily* const> families();

// null: no kernel of `isa` has this id.
const KernelFamily* find_family(KernelId id, Isa isa);

// Kernel, shape and grid of the plan, whose problem, isa, prepared and unaligned are set: of the
// families of that instruction set that support it the one whose kernel should take the least time,
// or what the constraints demand.
Status choose_family(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints);

// What a plan of the strategy fused should take, with weights in memory; none: no model knows the
// kernel, or the GPU.
std::optional<PredictedTime> predicted_time(const Plan& plan, const DeviceCaps& caps);

}  // namespace dualgemm::cuda
