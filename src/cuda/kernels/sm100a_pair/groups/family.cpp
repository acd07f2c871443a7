#include "cuda/kernels/sm100a_pair/groups/family.hpp"

#include "cuda/kernels/blackwell/group_operands.hpp"
#include "cuda/kernels/blackwell/tile_choice.hpp"
#include "cuda/kernels/sm100a_pair/family.hpp"
#include "cuda/kernels/sm100a_pair/groups/launch.hpp"

namespace dualgemm::cuda::sm100a_pair_groups {
namespace {

KernelShape shape_for(const Problem& problem) {
  const Instance& instance = instance_for(problem.d.type);
  return {.tile_m = kTileM,
          .tile_n = instance.config.tile_n,
          .tile_k = kTileK,
          .stages = instance.stages};
}

Status supports_request(const KernelRequest& request) {
  DUALGEMM_TRY(check_pairs("prepared", request.prepared ? "true" : "false", request.caps));
  return supports(request.problem);
}

std::vector<KernelShape> candidates(const KernelRequest& request) {
  return {shape_for(request.problem)};
}

TimedShape fastest(const KernelRequest& request) {
  const DeviceCaps& caps = request.caps;
  const int64_t pairs = blackwell::pairs_at_once(caps.num_sms, caps.max_pairs);
  return {shape_for(request.problem),
          modelled_clocks(request.problem, pairs) / blackwell::kClocksPerUs};
}

Status deal_out(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const Expected<int64_t> most = sm100a_pair::most_pair_ctas(constraints, caps);
  if (!most) return most.status();
  plan.shape.ctas = ctas_for(plan.problem, *most);
  return {};
}

blackwell::Copies copies_of(const Plan& plan) {
  return blackwell::plan_group_copies(core::resolve(plan.problem), plan.unaligned, plan.prepared);
}

int64_t plan_workspace(const Plan& plan) { return workspace_bytes(plan.problem, copies_of(plan)); }

Expected<FamilyLaunches> launches(const LaunchInputs& in) {
  const Plan& plan = in.plan;
  const blackwell::Copies copies = copies_of(plan);
  auto launches = build_launches(
      in.problem, in.buffers, copies, in.workspace, instance_for(plan.problem.d.type),
      ctas_for(plan.problem, plan.shape.ctas), in.encode_tiled, in.prepared);
  if (!launches) return launches.status();
  return FamilyLaunches{*std::move(launches), 2 * copies.workspace_bytes};
}

}  // namespace

constinit const KernelFamily kFamily{.id = KernelId::kSm100aPairGroups,
                                     .isa = Isa::kSm100a,
                                     .rank = 1,
                                     .pairs = true,
                                     .supports = supports_request,
                                     .candidates = candidates,
                                     .fastest = fastest,
                                     .deal_out = deal_out,
                                     .workspace_bytes = plan_workspace,
                                     .launches = launches};

}  // namespace dualgemm::cuda::sm100a_pair_groups
