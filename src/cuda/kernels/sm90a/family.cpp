#include "cuda/kernels/sm90a/family.hpp"

#include "cuda/kernels/hopper/checks.hpp"

namespace dualgemm::cuda::sm90a {
namespace {

Status supports_request(const KernelRequest& request) { return supports(request.problem); }

// Where bits must not depend on m, k is not shared between warpgroups.
std::vector<KernelShape> candidates(const KernelRequest& request) {
  std::vector<KernelShape> shapes;
  for (const Instance& instance : instances_for(request.problem)) {
    if (instance.config.prepared == request.prepared && is_for(instance.config, request.problem))
      shapes.push_back(shape_of(instance));
  }
  return shapes;
}

// The unit of time on Hopper.
TimedShape fastest(const KernelRequest& request) {
  return {shape_of(choose_instance(request.problem, request.caps.num_sms, request.prepared)), 1};
}

// null: no compiled kernel.
const Instance* instance_of(const Plan& plan) {
  const Instance* const found =
      find_instance(instances_for(plan.problem), plan.shape.tile_m, plan.shape.tile_n,
                    plan.shape.k_warpgroups, multiplies_bf16(plan.problem), plan.prepared);
  return found != nullptr && is_for(found->config, plan.problem) ? found : nullptr;
}

Status deal_out(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const Expected<int64_t> most = most_ctas(constraints, caps);
  if (!most) return most.status();
  plan.shape.ctas = make_schedule(plan.problem, instance_of(plan)->config, *most).ctas;
  return {};
}

Workspace workspace_of(const Plan& plan, const Config& config) {
  return plan_workspace(core::resolve(plan.problem), config,
                        make_schedule(plan.problem, config, plan.shape.ctas), plan.unaligned);
}

int64_t workspace_bytes(const Plan& plan) {
  const Instance* const instance = instance_of(plan);
  return instance == nullptr ? 0 : workspace_of(plan, instance->config).bytes;
}

Expected<FamilyLaunches> launches(const LaunchInputs& in) {
  const Plan& plan = in.plan;
  const Instance* const instance = instance_of(plan);
  if (instance == nullptr) return hopper::not_compiled(plan.shape);
  const Workspace pieces = workspace_of(plan, instance->config);
  auto launches = build_launches(in.problem, in.buffers, pieces, in.workspace, *instance,
                                 make_schedule(plan.problem, instance->config, plan.shape.ctas),
                                 in.encode_tiled, in.prepared);
  if (!launches) return launches.status();
  return FamilyLaunches{*std::move(launches), 2 * pieces.bytes};
}

}  // namespace

KernelShape shape_of(const Instance& instance) {
  return {.tile_m = instance.config.tile_m,
          .tile_n = tile_n_of(instance.config),
          .tile_k = kTileK,
          .stages = instance.weight_stages,
          .k_warpgroups = instance.config.k_warpgroups};
}

constinit const KernelFamily kFamily{.id = KernelId::kSm90a,
                                     .isa = Isa::kSm90a,
                                     .rank = 1,
                                     .supports = supports_request,
                                     .candidates = candidates,
                                     .fastest = fastest,
                                     .deal_out = deal_out,
                                     .workspace_bytes = workspace_bytes,
                                     .launches = launches};

}  // namespace dualgemm::cuda::sm90a
