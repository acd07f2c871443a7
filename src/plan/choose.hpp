// The choice of a plan as a pure function: nothing is asked from the machine or the environment.
#pragma once

#include <span>
#include <string>

#include "core/team.hpp"
#include "plan/strategy.hpp"

namespace dualgemm::plan {

inline constexpr int kMaxThreads = core::kMaxTeam;

// force_isa: the value of DUALGEMM_FORCE_ISA, which is about the CPU; empty = not set.
// PlanOptions::isa wins over it.
Expected<Plan> choose(const core::CheckedProblem& problem, const PlanOptions& options,
                      const DeviceCaps& caps, std::span<const Strategy* const> strategies,
                      const std::string& force_isa);
// The same of a problem that validate() has not seen.
Expected<Plan> choose(const Problem& problem, const PlanOptions& options, const DeviceCaps& caps,
                      std::span<const Strategy* const> strategies, const std::string& force_isa);

const Strategy* find_strategy(std::span<const Strategy* const> strategies, StrategyId id,
                              DeviceKind device) noexcept;  // null: not there

}  // namespace dualgemm::plan
