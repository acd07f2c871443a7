// The strategies of the CUDA backend.
#pragma once

#include <span>
#include <string>

#include "plan/strategy.hpp"

namespace dualgemm::cuda {

// ok if both products make one output: two that stand side by side only fused writes.
inline Status check_combine(const Problem& problem) {
  if (problem.combine == Combine::kGlu) return {};
  return Status::unsupported("combine", name_of(problem.combine),
                             "on a GPU only the strategy fused writes it");
}

// What the current GPU offers, as far as its kernels have to be asked for it, too: on one of
// compute capability 10.x that starts a context.
Expected<DeviceCaps> current_gpu_caps();

// Whether the GPU can run the plan's kernel at all; one of pairs needs clusters of two CTAs.
Status check_schedulable(const Plan& plan, const DeviceCaps& caps);

// In the order of the documentation's table, those of this build. The objects live as long as the
// program.
std::span<const Strategy* const> strategies();

const Strategy& two_pass_strategy() noexcept;
const Strategy& cached_strategy() noexcept;
const Strategy& graph_strategy() noexcept;
const Strategy& streams_strategy() noexcept;
const Strategy& fused_epilogue_strategy() noexcept;
const Strategy& fused_sequential_strategy() noexcept;
const Strategy& fused_strategy() noexcept;
const Strategy& fp8_strategy() noexcept;
const Strategy& cutlass_strategy() noexcept;

}  // namespace dualgemm::cuda
