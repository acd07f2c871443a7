#include "cuda/families.hpp"

#include <array>
#include <optional>
#include <vector>

#include "cuda/kernel_choice.hpp"
#include "cuda/kernels/sm100a/family.hpp"
#include "cuda/kernels/sm100a_pair/family.hpp"
#include "cuda/kernels/sm100a_pair/groups/family.hpp"
#include "cuda/kernels/sm100a_skinny/family.hpp"
#include "cuda/kernels/sm100a_w4a16/family.hpp"
#include "cuda/kernels/sm120a/family.hpp"
#include "cuda/kernels/sm80/family.hpp"
#include "cuda/kernels/sm90a/family.hpp"
#include "cuda/kernels/sm90a_skinny/family.hpp"

namespace dualgemm::cuda {
namespace {

// In the order in which compiled kernels are listed, and searched for one that satisfies a caller's
// constraints.
constexpr std::array kFamilies{&sm80::kFamily,
                               &sm90a_skinny::kFamily,
                               &sm90a::kFamily,
                               &sm100a::kFamily,
                               &sm100a_pair::kFamily,
                               &sm100a_pair::kPersistentFamily,
                               &sm100a_skinny::kFamily,
                               &sm100a_skinny::kPersistentFamily,
                               &sm100a_skinny::kGroupsFamily,
                               &sm100a_pair_groups::kFamily,
                               &sm100a_w4a16::kFamily,
                               &sm100a_w4a16::kPersistentFamily,
                               &sm100a_w4a16::kGroupsFamily,
                               &sm120a::kFamily};

struct FamilyChoice {
  const KernelFamily* family;
  TimedShape fastest;
};

bool is_before(const FamilyChoice& a, const FamilyChoice& b) {
  return a.fastest.time != b.fastest.time ? a.fastest.time < b.fastest.time
                                          : a.family->rank < b.family->rank;
}

KernelChoice kernel_of(const FamilyChoice& choice) {
  return {choice.family->id, choice.fastest.shape};
}

// What a plan takes if it satisfies the constraints.
KernelChoice usual_kernel(std::span<const FamilyChoice> choices,
                          const PlanConstraints& constraints) {
  const FamilyChoice* best = nullptr;
  for (const FamilyChoice& choice : choices) {
    if (best == nullptr || is_before(choice, *best)) best = &choice;
  }
  if (best == nullptr) return {};
  const KernelChoice fastest = kernel_of(*best);
  if (satisfies_tile_constraints(fastest.kernel, fastest.shape, constraints)) return fastest;
  for (const FamilyChoice& choice : choices) {
    if (choice.family->chooses_first) return kernel_of(choice);
  }
  return fastest;
}

}  // namespace

std::span<const KernelFamily* const> families() { return kFamilies; }

const KernelFamily* find_family(KernelId id, Isa isa) {
  for (const KernelFamily* const family : kFamilies) {
    if (family->id == id && family->isa == isa) return family;
  }
  return nullptr;
}

std::optional<PredictedTime> predicted_time(const Plan& plan, const DeviceCaps& caps) {
  if (plan.strategy != StrategyId::kFused) return std::nullopt;
  const KernelFamily* const family = find_family(plan.kernel_id, plan.isa);
  if (family == nullptr || family->predicted == nullptr) return std::nullopt;
  return family->predicted(plan, caps);
}

Status choose_family(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const KernelRequest request{plan.problem, plan.prepared, plan.unaligned, caps};
  std::vector<KernelChoice> compiled;
  std::vector<FamilyChoice> choices;
  for (const KernelFamily* const family : kFamilies) {
    if (family->isa != plan.isa || !family->supports(request).ok()) continue;
    const std::vector<KernelShape> candidates = family->candidates(request);
    if (candidates.empty()) continue;
    for (const KernelShape& shape : candidates) compiled.push_back({family->id, shape});
    choices.push_back({family, family->fastest(request)});
  }
  const Expected<KernelChoice> kernel =
      choose_kernel(compiled, usual_kernel(choices, constraints), constraints);
  if (!kernel) return kernel.status();
  fill_in(plan, *kernel);
  const KernelFamily* const family = find_family(kernel->kernel, plan.isa);
  return family->deal_out == nullptr ? Status() : family->deal_out(plan, caps, constraints);
}

}  // namespace dualgemm::cuda
