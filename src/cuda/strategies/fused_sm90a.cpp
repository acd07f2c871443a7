// fused on Hopper: copies where the TMA unit needs them, a's preparation, then one kernel.
#include <fmt/format.h>

#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"
#include "cuda/strategies/kernel_choice.hpp"

namespace dualgemm::cuda {
namespace {

KernelNumbers numbers_of(const sm90a::Instance& instance) {
  return {.tile_m = instance.config.tokens,
          .tile_n = instance.config.groups * sm90a::kGroupCols,
          .slab_k = sm90a::kBlockK,
          .stages = instance.weight_stages,
          .phases = instance.config.phases};
}

// Where bits must not depend on m, there is no kernel with phases for the problem.
std::vector<KernelNumbers> compiled_for(const Problem& problem) {
  std::vector<KernelNumbers> compiled;
  for (const sm90a::Instance& instance : sm90a::instances()) {
    if (instance.config.bf16 == sm90a::multiplies_bf16(problem) &&
        (instance.config.phases == 1 || !problem.batch_invariant)) {
      compiled.push_back(numbers_of(instance));
    }
  }
  return compiled;
}

const sm90a::Instance* instance_of(const Plan& plan) {
  return sm90a::find_instance(plan.tile_m, plan.tile_n, plan.phases,
                              sm90a::multiplies_bf16(plan.problem));
}

Status plan_sm90a(Plan& plan, const DeviceCaps& caps, const PlanWishes& wishes) {
  const sm90a::Instance& usual = sm90a::choose_instance(plan.problem, caps.num_sms);
  const Expected<KernelNumbers> kernel =
      choose_kernel(compiled_for(plan.problem), numbers_of(usual), wishes);
  if (!kernel) return kernel.status();
  if (wishes.ctas != PlanWishes::kAny && (wishes.ctas < 1 || wishes.ctas > caps.num_sms)) {
    return Status::invalid("config", fmt::format("ctas={}", wishes.ctas),
                           fmt::format("must be 1 .. {}, as this GPU has SMs", caps.num_sms));
  }
  fill_in(plan, *kernel);
  const int64_t most = wishes.ctas == PlanWishes::kAny ? caps.num_sms : wishes.ctas;
  plan.ctas = sm90a::make_schedule(plan.problem, instance_of(plan)->config, most).ctas;
  return {};
}

sm90a::Workspace workspace_of(const Plan& plan, const sm90a::Config& config) {
  return sm90a::plan_workspace(core::resolve(plan.problem), config,
                               sm90a::make_schedule(plan.problem, config, plan.ctas),
                               plan.unaligned);
}

int64_t workspace_bytes_sm90a(const Plan& plan) {
  const sm90a::Instance* instance = instance_of(plan);
  return instance == nullptr ? 0 : workspace_of(plan, instance->config).bytes;
}

Expected<std::vector<KernelLaunch>> launches_sm90a(const Plan& plan, const Buffers& buffers,
                                                   void* workspace, EncodeTiled encode_tiled,
                                                   int64_t* intermediate_bytes) {
  const sm90a::Instance* instance = instance_of(plan);
  if (instance == nullptr) {
    return Status::unsupported(
        "plan", fmt::format("tile {} x {} in {} phases", plan.tile_m, plan.tile_n, plan.phases),
        "must be one of the compiled kernels");
  }
  const sm90a::Workspace pieces = workspace_of(plan, instance->config);
  *intermediate_bytes = 2 * pieces.bytes;
  return sm90a::build_launches(core::resolve(plan.problem), buffers, pieces, workspace, *instance,
                               sm90a::make_schedule(plan.problem, instance->config, plan.ctas),
                               encode_tiled);
}

}  // namespace

const FusedKernel& fused_kernel_sm90a() {
  static const FusedKernel kernel{Isa::kSm90a, sm90a::supports, plan_sm90a, workspace_bytes_sm90a,
                                  launches_sm90a};
  return kernel;
}

}  // namespace dualgemm::cuda
