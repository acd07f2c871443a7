// fused on Hopper: copies where the TMA unit needs them, a's preparation, then one kernel.
#include <fmt/format.h>

#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"

namespace dualgemm::cuda {
namespace {

void plan_sm90a(Plan& plan, const DeviceCaps& caps) {
  const sm90a::Instance& instance = sm90a::choose_instance(plan.problem, caps.num_sms);
  plan.tile_m = instance.config.tokens;
  plan.tile_n = instance.config.groups * sm90a::kGroupCols;
  plan.slab_k = sm90a::kBlockK;
  plan.phases = instance.config.phases;
  plan.stages = instance.weight_stages;
  plan.ctas = sm90a::make_schedule(plan.problem, instance.config, caps.num_sms).ctas;
}

const sm90a::Instance* instance_of(const Plan& plan) {
  return sm90a::find_instance(plan.tile_m, plan.tile_n, plan.phases,
                              sm90a::multiplies_bf16(plan.problem));
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
