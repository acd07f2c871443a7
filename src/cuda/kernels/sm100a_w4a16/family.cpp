#include "cuda/kernels/sm100a_w4a16/family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cuda/kernels/blackwell/group_operands.hpp"
#include "cuda/kernels/sm100a_w4a16/launch.hpp"

namespace dualgemm::cuda::sm100a_w4a16 {
namespace {

// With its CTAs: those that share k, for each tile of D; persistent ones are not known yet.
KernelShape shape_of(const Problem& problem, const Instance& instance, int num_sms) {
  const int tile_m = instance.config.tile_m;
  return {.tile_m = tile_m,
          .tile_n = kTileN,
          .tile_k = kTileK,
          .stages = instance.stages,
          .ctas = instance.config.grouped
                      ? 0
                      : num_tiles(problem, tile_m) * choose_split(problem, instance, num_sms)};
}

Status supports_rows(const KernelRequest& request) {
  const Problem& p = request.problem;
  if (p.grouping == Grouping::kNone) return supports(p);
  return Status::unsupported("grouping", dualgemm::name_of(p.grouping), "this kernel takes none");
}
Status supports_groups(const KernelRequest& request) {
  const Problem& p = request.problem;
  if (p.grouping != Grouping::kNone) return supports(p);
  return Status::unsupported("grouping", "none", "this kernel is for groups");
}

std::vector<KernelShape> shapes_of(const KernelRequest& request, bool persistent) {
  const Problem& p = request.problem;
  std::vector<KernelShape> shapes;
  for (const Instance& instance : instances_for(p, persistent)) {
    if (is_for(instance.config, p)) shapes.push_back(shape_of(p, instance, request.caps.num_sms));
  }
  return shapes;
}
std::vector<KernelShape> candidates(const KernelRequest& request) {
  return shapes_of(request, false);
}
std::vector<KernelShape> persistent_candidates(const KernelRequest& request) {
  return shapes_of(request, true);
}

TimedShape timed(const KernelRequest& request, bool persistent) {
  const Problem& p = request.problem;
  const int num_sms = request.caps.num_sms;
  const Instance& instance = fewest_rows(p, persistent);
  return {shape_of(p, instance, num_sms),
          blackwell::copies_us(p, request.prepared, persistent) +
              modelled_us(p, instance, choose_split(p, instance, num_sms), num_sms)};
}
TimedShape fastest(const KernelRequest& request) { return timed(request, false); }
TimedShape fastest_persistent(const KernelRequest& request) { return timed(request, true); }
TimedShape fastest_for_groups(const KernelRequest& request) {
  const Problem& p = request.problem;
  const int num_sms = request.caps.num_sms;
  // No other family has 16-bit A of groups.
  return {shape_of(p, choose_instance(p, num_sms, request.prepared), num_sms), 1};
}

bool is_persistent(const Plan& plan) { return plan.kernel_id != KernelId::kSm100aW4a16; }

// The CTAs of each tile of D are what the constraints leave.
Status deal_out_clusters(Plan& plan, const DeviceCaps&, const PlanConstraints& constraints) {
  if (!constraints.demands_ctas()) return {};
  const Problem& p = plan.problem;
  const int tile_m = static_cast<int>(plan.shape.tile_m);
  const int64_t tiles = num_tiles(p, tile_m);
  const int split = largest_split(p, tile_m, constraints.ctas);
  if (split < 1) {
    return Status::invalid("config", fmt::format("ctas={}", constraints.ctas),
                           fmt::format("must be at least {}, the tiles of D", tiles));
  }
  plan.shape.ctas = tiles * split;
  return {};
}

Status deal_out(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const Expected<int64_t> most = most_ctas(constraints, caps);
  if (!most) return most.status();
  plan.shape.ctas = persistent_ctas(plan.problem, static_cast<int>(plan.shape.tile_m), *most);
  return {};
}

blackwell::Copies copies_of(const Plan& plan) {
  return plan_copies(core::resolve(plan.problem), plan.unaligned, plan.prepared,
                     is_persistent(plan));
}

int64_t plan_workspace(const Plan& plan) {
  const blackwell::Copies copies = copies_of(plan);
  const Instance* const instance =
      find_instance(plan.problem, plan.shape.tile_m, is_persistent(plan));
  return instance == nullptr ? copies.workspace_bytes
                             : workspace_bytes(plan.problem, copies, *instance);
}

Expected<FamilyLaunches> launches(const LaunchInputs& in) {
  const Plan& plan = in.plan;
  const int tile_m = static_cast<int>(plan.shape.tile_m);
  const bool persistent = is_persistent(plan);
  const Instance* const instance = find_instance(plan.problem, tile_m, persistent);
  if (instance == nullptr) {
    return Status::unsupported("plan.shape.tile_m", std::to_string(tile_m),
                               "must be a compiled tile of the kernel for 16-bit A");
  }
  DUALGEMM_TRY(supports(plan.problem));
  const core::ResolvedProblem& problem = in.problem;
  const blackwell::Copies copies = copies_of(plan);
  const auto build = [&] {
    if (persistent) {
      const int64_t ctas =
          persistent_ctas(plan.problem, tile_m, std::max<int64_t>(plan.shape.ctas, 1));
      return build_persistent_launches(problem, in.buffers, copies, in.workspace, *instance, ctas,
                                       in.encode_tiled, in.prepared);
    }
    const int64_t split = plan.shape.ctas / num_tiles(plan.problem, tile_m);
    return build_launches(problem, in.buffers, copies, in.workspace, *instance,
                          static_cast<int>(split), in.encode_tiled, in.prepared);
  };
  auto launches = build();
  if (!launches) return launches.status();
  return FamilyLaunches{*std::move(launches), 2 * copies.workspace_bytes};
}

}  // namespace

constinit const KernelFamily kFamily{.id = KernelId::kSm100aW4a16,
                                     .isa = Isa::kSm100a,
                                     .rank = 0,
                                     .supports = supports_rows,
                                     .candidates = candidates,
                                     .fastest = fastest,
                                     .deal_out = deal_out_clusters,
                                     .workspace_bytes = plan_workspace,
                                     .launches = launches};

constinit const KernelFamily kPersistentFamily{.id = KernelId::kSm100aW4a16Persistent,
                                               .isa = Isa::kSm100a,
                                               .rank = 1,
                                               .supports = supports_rows,
                                               .candidates = persistent_candidates,
                                               .fastest = fastest_persistent,
                                               .deal_out = deal_out,
                                               .workspace_bytes = plan_workspace,
                                               .launches = launches};

constinit const KernelFamily kGroupsFamily{.id = KernelId::kSm100aW4a16Groups,
                                           .isa = Isa::kSm100a,
                                           .rank = 0,
                                           .supports = supports_groups,
                                           .candidates = candidates,
                                           .fastest = fastest_for_groups,
                                           .deal_out = deal_out,
                                           .workspace_bytes = plan_workspace,
                                           .launches = launches};

}  // namespace dualgemm::cuda::sm100a_w4a16
