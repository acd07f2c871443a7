#include "cuda/kernels/sm80/family.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/problem.hpp"
#include "cuda/kernels/sm80/predicted_time.hpp"

namespace dualgemm::cuda::sm80 {
namespace {

Division division_of(const Plan& plan, const Instance& instance) {
  if (plan.shape.k_warpgroups == 0) return {Division::kShares, plan.shape.ctas};
  return {plan.shape.k_warpgroups / instance.config.warps_k, plan.shape.ctas};
}

Status supports_request(const KernelRequest& request) { return supports(request.problem); }

std::vector<KernelShape> candidates(const KernelRequest& request) {
  return shapes_for({request.problem, Pass::kFused, request.prepared});
}

TimedShape fastest(const KernelRequest& request) {
  const Config& config =
      choose_instance({request.problem, Pass::kFused, request.prepared}, request.caps).config;
  return {shape_of(config, division_for(config, request.problem, request.caps)),
          1};  // there is no other family
}

int64_t plan_workspace(const Plan& plan) {
  const auto instance = instance_of(plan, Pass::kFused);
  return instance ? workspace_bytes(plan.problem, **instance, division_of(plan, **instance)) : 0;
}

// A demand for CTAs alone is one for equal shares; with one part of k, for turns. What has several
// parts of k has a CTA for each, and is refused where a caller demands another number.
Status deal_out(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const bool demanded = constraints.demands_ctas();
  if (constraints.ctas == PlanConstraints::kUnnamed && plan.shape.k_warpgroups > 0) {
    plan.shape.ctas = 0;
    return {};
  }
  if (plan.shape.ctas > 0 && !demanded) return {};
  const InstanceRequest request{plan.problem, Pass::kFused, plan.prepared};
  const Config& config =
      find_instance(request, {plan.shape.tile_m, plan.shape.tile_n, plan.shape.k_warpgroups})
          ->config;
  if (!demanded && !is_wide(config)) {
    plan.shape = shape_of(config, division_for(config, plan.problem, caps));
    return {};
  }
  const Expected<int64_t> most =
      most_ctas(constraints, caps, ctas_of_sm(config, caps.compute_capability));
  if (!most) return most.status();
  const int64_t k_parts =
      demanded ? std::max<int64_t>(constraints.k_warpgroups, 0) : plan.shape.k_warpgroups;
  if ((k_parts == 1 || !is_wide(config)) && can_take_turns(config, plan.problem)) {
    const Division turns = turns_of(config, plan.problem, *most);
    if (demanded || turns.ctas == *most) plan.shape = shape_of(config, turns);
  } else if (k_parts == 0 && can_share(config, plan.problem)) {
    plan.shape = shape_of(config, shares_of(config, plan.problem, *most));
  }
  return {};
}

Expected<FamilyLaunches> launches(const LaunchInputs& in) {
  const auto instance = instance_of(in.plan, Pass::kFused);
  if (!instance) return instance.status();
  const Division division = division_of(in.plan, **instance);
  return FamilyLaunches{
      build_fused({in.problem, in.buffers, **instance, in.workspace, in.prepared, division}),
      moved_partial_bytes(in.problem.problem, (*instance)->config, division)};
}

}  // namespace

KernelShape shape_of(const Config& config, const Division& division) {
  return {.tile_m = tile_m_of(config),
          .tile_n = tile_n_of(config),
          .tile_k = kChunkK,
          .stages = stages_of(config),
          .k_warpgroups = config.warps_k * division.splits,
          .ctas = division.ctas};
}

std::vector<KernelShape> shapes_for(const InstanceRequest& request) {
  std::vector<KernelShape> shapes;
  for (const Instance& instance : instances(request.prepared)) {
    const Config& config = instance.config;
    if (!is_for(config, request)) continue;
    for (const int64_t splits : kSplits) {
      if (divides_k_by(config, request.problem, config.warps_k * splits))
        shapes.push_back(shape_of(config, {splits}));
    }
    if (can_share(config, request.problem)) {
      shapes.push_back(shape_of(config, {}));
      shapes.back().k_warpgroups = 0;  // and CTAs that deal_out() says
    }
  }
  return shapes;
}

Expected<const Instance*> instance_of(const Plan& plan, Pass pass) {
  const KernelShape& shape = plan.shape;
  const Instance* instance = find_instance({plan.problem, pass, plan.prepared},
                                           {shape.tile_m, shape.tile_n, shape.k_warpgroups});
  const auto can_have_ctas = [&](const Config& config) {
    if (shape.k_warpgroups == 0) {
      return shape.ctas > 0 && can_share(config, plan.problem) &&
             shares_of(config, plan.problem, shape.ctas).ctas == shape.ctas;
    }
    return shape.ctas == 0 || (shape.k_warpgroups == config.warps_k && shape.ctas > 0 &&
                               can_take_turns(config, plan.problem) &&
                               turns_of(config, plan.problem, shape.ctas).ctas == shape.ctas);
  };
  if (shape.tile_m > 0 && shape.tile_n > 0 && shape.k_warpgroups >= 0 && instance != nullptr &&
      shape.stages == stages_of(instance->config) && can_have_ctas(instance->config))
    return instance;
  return Status::unsupported(
      "plan",
      fmt::format("tile {} x {}, {} parts of k, {} CTAs, {} stages", shape.tile_m, shape.tile_n,
                  shape.k_warpgroups, shape.ctas, shape.stages),
      "must be one of the compiled kernels");
}

constinit const KernelFamily kFamily{.id = KernelId::kSm80,
                                     .isa = Isa::kSm80,
                                     .rank = 0,
                                     .supports = supports_request,
                                     .candidates = candidates,
                                     .fastest = fastest,
                                     .deal_out = deal_out,
                                     .workspace_bytes = plan_workspace,
                                     .launches = launches,
                                     .predicted = predicted_time};

}  // namespace dualgemm::cuda::sm80
