#include "cuda/kernels/sm100a_skinny/family.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/kernels/blackwell/checks.hpp"
#include "cuda/kernels/blackwell/group_operands.hpp"
#include "cuda/kernels/blackwell/tile_choice.hpp"
#include "cuda/kernels/sm100a_skinny/launch.hpp"

namespace dualgemm::cuda::sm100a_skinny {
namespace {

KernelShape shape_of(const Instance& instance) {
  return {.tile_m = instance.config.tile_m,
          .tile_n = instance.config.tile_n,
          .tile_k = kTileK,
          .stages = instance.stages};
}

// Bits that must not depend on m come from one kernel, that of one CTA: that an MMA gives the same
// ones with its operands in the other roles is so in the interpreter, and no document promises it.
Status check_rows(const Problem& problem) {
  if (problem.grouping != Grouping::kNone) {
    return Status::unsupported("grouping", dualgemm::name_of(problem.grouping),
                               "this kernel takes none");
  }
  if (problem.batch_invariant)
    return Status::unsupported("batch_invariant", "true", "only the kernel of one CTA is");
  return supports(problem);
}

Status supports_rows(const KernelRequest& request) { return check_rows(request.problem); }
Status supports_groups(const KernelRequest& request) {
  if (request.problem.grouping == Grouping::kNone)
    return Status::unsupported("grouping", "none", "this kernel is for groups");
  return supports(request.problem);
}

std::vector<KernelShape> shapes_of(const Problem& problem, bool prepared, bool persistent) {
  std::vector<KernelShape> shapes;
  for (const Instance& instance : instances_for(problem, prepared, persistent)) {
    const Config& config = instance.config;
    if (find_instance(problem, config.tile_m, config.tile_n, prepared, persistent) == &instance)
      shapes.push_back(shape_of(instance));
  }
  return shapes;
}
std::vector<KernelShape> candidates(const KernelRequest& request) {
  return shapes_of(request.problem, request.prepared, false);
}
std::vector<KernelShape> persistent_candidates(const KernelRequest& request) {
  return shapes_of(request.problem, request.prepared, true);
}

TimedShape timed(const KernelRequest& request, const Instance& instance) {
  return {shape_of(instance),
          modelled_us(request.problem, instance, request.caps.num_sms, request.prepared)};
}
TimedShape fastest(const KernelRequest& request) {
  return timed(request, *fastest_tile(request.problem, request.caps.num_sms, request.prepared));
}
TimedShape fastest_persistent(const KernelRequest& request) {
  return timed(request, persistent_instance(request.problem));
}
TimedShape fastest_for_groups(const KernelRequest& request) {
  const Problem& p = request.problem;
  return {shape_of(choose_instance(p, request.caps.num_sms)),
          modelled_group_clocks(p, request.caps.num_sms) / blackwell::kClocksPerUs};
}

bool is_persistent(const Plan& plan) { return plan.kernel_id != KernelId::kSm100aSkinny; }

// null: no compiled tile that the plan's problem may have.
const Instance* instance_of(const Plan& plan) {
  return find_instance(plan.problem, plan.shape.tile_m, plan.shape.tile_n, plan.prepared,
                       is_persistent(plan));
}

Status deal_out(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const Expected<int64_t> most = most_ctas(constraints, caps);
  if (!most) return most.status();
  plan.shape.ctas = static_cast<int>(ctas_for(plan.problem, instance_of(plan)->config, *most));
  return {};
}

blackwell::Copies copies_of(const Plan& plan) {
  return plan_copies(core::resolve(plan.problem), plan.unaligned, plan.prepared,
                     is_persistent(plan));
}

int64_t plan_workspace(const Plan& plan) {
  const blackwell::Copies copies = copies_of(plan);
  const Instance* const instance = instance_of(plan);
  return instance == nullptr ? copies.workspace_bytes
                             : workspace_bytes(plan.problem, copies, *instance);
}

Expected<FamilyLaunches> launches(const LaunchInputs& in) {
  const Plan& plan = in.plan;
  const bool grouped = plan.problem.grouping != Grouping::kNone;
  DUALGEMM_TRY(grouped ? supports(plan.problem) : check_rows(plan.problem));
  const Instance* const instance = instance_of(plan);
  if (instance == nullptr) {
    return Status::unsupported("plan.shape",
                               fmt::format("{} x {}", plan.shape.tile_m, plan.shape.tile_n),
                               "must be a compiled tile of the kernel for few rows that has m");
  }
  const blackwell::Copies copies = copies_of(plan);
  auto launches = build_launches(
      in.problem, in.buffers, copies, in.workspace, *instance,
      ctas_for(plan.problem, instance->config, std::max<int64_t>(plan.shape.ctas, 1)),
      in.encode_tiled, in.prepared);
  if (!launches) return launches.status();
  return FamilyLaunches{*std::move(launches), 2 * copies.workspace_bytes};
}

}  // namespace

constinit const KernelFamily kFamily{.id = KernelId::kSm100aSkinny,
                                     .isa = Isa::kSm100a,
                                     .rank = 0,
                                     .supports = supports_rows,
                                     .candidates = candidates,
                                     .fastest = fastest,
                                     .deal_out = nullptr,
                                     .workspace_bytes = plan_workspace,
                                     .launches = launches};

constinit const KernelFamily kPersistentFamily{.id = KernelId::kSm100aSkinnyPersistent,
                                               .isa = Isa::kSm100a,
                                               .rank = 1,
                                               .supports = supports_rows,
                                               .candidates = persistent_candidates,
                                               .fastest = fastest_persistent,
                                               .deal_out = deal_out,
                                               .workspace_bytes = plan_workspace,
                                               .launches = launches};

constinit const KernelFamily kGroupsFamily{.id = KernelId::kSm100aSkinnyGroups,
                                           .isa = Isa::kSm100a,
                                           .rank = 0,
                                           .chooses_first = true,
                                           .supports = supports_groups,
                                           .candidates = persistent_candidates,
                                           .fastest = fastest_for_groups,
                                           .deal_out = deal_out,
                                           .workspace_bytes = plan_workspace,
                                           .launches = launches};

}  // namespace dualgemm::cuda::sm100a_skinny
