#include "cuda/kernels/sm90a_skinny/family.hpp"

#include <algorithm>

#include "cuda/kernels/hopper/checks.hpp"
#include "cuda/kernels/sm90a_skinny/launch.hpp"

namespace dualgemm::cuda::sm90a_skinny {
namespace {

KernelShape shape_of(const Instance& instance) {
  return {.tile_m = instance.config.tile_m,
          .tile_n = tile_n_of(instance.config),
          .tile_k = kTileK,
          .stages = instance.stages};
}

// The kernel for few rows adds in an order of its own, and reads operands in place.
Status check(const Problem& problem, bool prepared, bool unaligned) {
  if (problem.batch_invariant) {
    return Status::unsupported("batch_invariant", "true", "the kernel for few rows is not");
  }
  if (unaligned) {
    return Status::unsupported("plan.unaligned", "true",
                               "the kernel for few rows reads operands in place");
  }
  return supports(problem, prepared);
}

Status supports_request(const KernelRequest& request) {
  return check(request.problem, request.prepared, request.unaligned);
}

std::vector<KernelShape> candidates(const KernelRequest& request) {
  std::vector<KernelShape> shapes;
  for (const Instance& instance : instances_for(request.problem)) {
    const Config& config = instance.config;
    if (find_instance(request.problem, config.tile_m, tile_n_of(config), request.prepared) ==
        &instance)
      shapes.push_back(shape_of(instance));
  }
  return shapes;
}

// Measurements say which of the two kernels of Hopper is the faster one, not by how much:
// docs/kernels/sm90a_skinny.md has the points that is_faster() rests on. The time is given as a
// share of the wgmma kernel's.
TimedShape fastest(const KernelRequest& request) {
  constexpr double kFaster = 0.5, kSlower = 2;
  const Problem& p = request.problem;
  const int num_sms = request.caps.num_sms;
  return {shape_of(choose_instance(p, num_sms, request.prepared)),
          is_faster(p, num_sms, request.prepared) ? kFaster : kSlower};
}

// null: no compiled kernel.
const Instance* instance_of(const Plan& plan) {
  return find_instance(plan.problem, plan.shape.tile_m, plan.shape.tile_n, plan.prepared);
}

Status deal_out(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const Expected<int64_t> most = most_ctas(constraints, caps);
  if (!most) return most.status();
  plan.shape.ctas = static_cast<int>(ctas_for(plan.problem, instance_of(plan)->config, *most));
  return {};
}

int64_t plan_workspace(const Plan& plan) {
  const Instance* const instance = instance_of(plan);
  return instance == nullptr ? 0 : workspace_bytes(plan.problem, *instance);
}

Expected<FamilyLaunches> launches(const LaunchInputs& in) {
  const Plan& plan = in.plan;
  const Instance* const instance = instance_of(plan);
  if (instance == nullptr) return hopper::not_compiled(plan.shape);
  DUALGEMM_TRY(check(plan.problem, plan.prepared, plan.unaligned));
  auto launches = build_launches(in.problem, in.buffers, in.workspace, *instance,
                                 std::max<int64_t>(plan.shape.ctas, 1), in.prepared);
  if (!launches) return launches.status();
  return FamilyLaunches{*std::move(launches)};
}

}  // namespace

constinit const KernelFamily kFamily{.id = KernelId::kSm90aSkinny,
                                     .isa = Isa::kSm90a,
                                     .rank = 0,
                                     .supports = supports_request,
                                     .candidates = candidates,
                                     .fastest = fastest,
                                     .deal_out = deal_out,
                                     .workspace_bytes = plan_workspace,
                                     .launches = launches};

}  // namespace dualgemm::cuda::sm90a_skinny
