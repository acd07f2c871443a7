#include "cuda/kernels/sm80/family.hpp"

#include <fmt/format.h>

#include "core/problem.hpp"

namespace dualgemm::cuda::sm80 {
namespace {

Status supports_request(const KernelRequest& request) { return supports(request.problem); }

std::vector<KernelShape> candidates(const KernelRequest& request) {
  return shapes_for(request.problem, fused_pass(request.problem));
}

TimedShape fastest(const KernelRequest& request) {
  const Problem& p = request.problem;
  return {shape_of(choose_instance(p, fused_pass(p)).config), 1};  // there is no other family
}

int64_t plan_workspace(const Plan& plan) {
  const auto instance = instance_of(plan, fused_pass(plan.problem));
  return instance ? workspace_bytes(plan.problem, **instance) : 0;
}

Expected<FamilyLaunches> launches(const LaunchInputs& in) {
  const auto instance = instance_of(in.plan, fused_pass(in.plan.problem));
  if (!instance) return instance.status();
  return FamilyLaunches{build_fused(in.problem, in.buffers, in.workspace, **instance)};
}

}  // namespace

KernelShape shape_of(const Config& config) {
  return {.tile_m = config.tile_m, .tile_n = tile_n_of(config), .tile_k = kTileK};
}

std::vector<KernelShape> shapes_for(const Problem& problem, Pass pass) {
  std::vector<KernelShape> shapes;
  for (const Instance& instance : instances()) {
    if (is_for(instance.config, problem, pass)) shapes.push_back(shape_of(instance.config));
  }
  return shapes;
}

Expected<const Instance*> instance_of(const Plan& plan, Pass pass) {
  const Instance* instance =
      find_instance(plan.problem, plan.shape.tile_m, plan.shape.tile_n, pass);
  if (plan.shape.tile_n > 0 && instance != nullptr) return instance;
  return Status::unsupported("plan",
                             fmt::format("tile {} x {}", plan.shape.tile_m, plan.shape.tile_n),
                             "must be one of the compiled kernels");
}

constinit const KernelFamily kFamily{.id = KernelId::kSm80,
                                     .isa = Isa::kSm80,
                                     .rank = 0,
                                     .supports = supports_request,
                                     .candidates = candidates,
                                     .fastest = fastest,
                                     .deal_out = nullptr,
                                     .workspace_bytes = plan_workspace,
                                     .launches = launches};

}  // namespace dualgemm::cuda::sm80
