#include "cuda/kernels/sm120a/family.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/problem.hpp"
#include "cuda/kernels/sm120a/choice.hpp"
#include "cuda/kernels/sm120a/launch.hpp"
#include "cuda/machine/gpus.hpp"

namespace dualgemm::cuda::sm120a {
namespace {

KernelShape shape_of(const Config& config, int stages) {
  return {.tile_m = tile_m_of(config), .tile_n = kTileN, .tile_k = kStageK, .stages = stages};
}

Status supports_request(const KernelRequest& request) { return supports(request.problem); }

// Each kernel with the ring that the problem gets, then with those of other problems: a plan's
// words are good for any.
std::vector<KernelShape> candidates(const KernelRequest& request) {
  std::vector<KernelShape> shapes;
  for (const Instance& instance : instances())
    shapes.push_back(
        shape_of(instance.config, stages_for(request.problem, instance.config, request.caps)));
  for (const Instance& instance : instances()) {
    for (int ctas = 1; ctas <= min_ctas_of(instance.config); ++ctas) {
      const KernelShape shape = shape_of(instance.config, most_stages(instance.config, ctas));
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
  }
  return shapes;
}

TimedShape fastest(const KernelRequest& request) {
  const Config& config = choose_instance(request.problem, request.caps).config;
  return {shape_of(config, stages_for(request.problem, config, request.caps)),
          modelled_us(request.problem, config, request.caps)};
}

// null: no compiled kernel.
const Instance* instance_of(const KernelShape& shape) {
  const Instance* const instance = find_instance(shape.tile_m);
  const bool fits =
      instance != nullptr && shape.tile_n == kTileN && has_stages(instance->config, shape.stages);
  return fits ? instance : nullptr;
}

// Where CTAs take tiles in turn: one for each SM.
Status deal_out(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const Expected<int64_t> most = most_ctas(constraints, caps);
  if (!most) return most.status();
  plan.shape.ctas = ctas_for(plan.problem, instance_of(plan.shape)->config, *most);
  return {};
}

int64_t plan_workspace(const Plan& plan) {
  const Instance* const instance = instance_of(plan.shape);
  return instance == nullptr ? 0 : workspace_bytes(plan.problem, *instance);
}

Expected<FamilyLaunches> launches(const LaunchInputs& in) {
  const KernelShape& shape = in.plan.shape;
  const Instance* const instance = instance_of(shape);
  if (instance == nullptr) {
    return Status::unsupported(
        "plan", fmt::format("tile {} x {}, {} stages", shape.tile_m, shape.tile_n, shape.stages),
        "must be one of the compiled kernels");
  }
  return FamilyLaunches{build_launches(
      {in.problem, in.buffers, *instance, shape.stages, shape.ctas, in.workspace, in.prepared})};
}

// The interval is that of ptxsim's clock for these GPUs, in parts of its time: where 90 % of draws
// of its parameters lie (docs/kernels/sm120a.md).
std::optional<PredictedTime> predicted(const Plan& plan, const DeviceCaps& caps) {
  const Instance* const instance = instance_of(plan.shape);
  if (instance == nullptr || machine::find(caps.compute_capability, caps.num_sms) == nullptr)
    return std::nullopt;
  const Problem& p = plan.problem;
  const double us = modelled_us(p, instance->config, caps);
  return PredictedTime{us, std::max(0.65 * us, least_us(p, caps)), 1.5 * us};
}

}  // namespace

constinit const KernelFamily kFamily{.id = KernelId::kSm120a,
                                     .isa = Isa::kSm120a,
                                     .rank = 0,
                                     .supports = supports_request,
                                     .candidates = candidates,
                                     .fastest = fastest,
                                     .deal_out = deal_out,
                                     .workspace_bytes = plan_workspace,
                                     .launches = launches,
                                     .predicted = predicted};

}  // namespace dualgemm::cuda::sm120a
