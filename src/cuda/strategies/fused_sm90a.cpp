// fused on Hopper. Few rows of A: one kernel. Else copies where the TMA unit needs them, A's
// preparation, then one kernel.
#include <fmt/format.h>

#include <algorithm>

#include "cuda/kernels/hopper/packed_weights.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/kernels/sm90a_skinny/launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"
#include "cuda/strategies/sm90a_plan.hpp"

namespace dualgemm::cuda {
namespace {

KernelChoice choice_of(const sm90a_skinny::Instance& instance) {
  return {.kernel = sm90a_skinny::kKernelName,
          .shape = {.tile_m = instance.config.tile_m,
                    .tile_n = sm90a_skinny::tile_n_of(instance.config),
                    .tile_k = sm90a_skinny::kTileK,
                    .stages = instance.stages}};
}

// The kernel for few rows adds in an order of its own, and reads operands in place.
Status suits_skinny(const Plan& plan) {
  if (plan.problem.batch_invariant) {
    return Status::unsupported("batch_invariant", "true", "the kernel for few rows is not");
  }
  if (plan.unaligned) {
    return Status::unsupported("plan.unaligned", "true",
                               "the kernel for few rows reads operands in place");
  }
  return sm90a_skinny::supports(plan.problem, plan.prepared);
}

// Where bits must not depend on m, k is not shared between warpgroups.
std::vector<KernelChoice> compiled_for(const Plan& plan) {
  const Problem& problem = plan.problem;
  std::vector<KernelChoice> compiled;
  if (suits_skinny(plan).ok()) {
    for (const sm90a_skinny::Instance& instance : sm90a_skinny::instances_for(problem)) {
      const sm90a_skinny::Instance* const found = sm90a_skinny::find_instance(
          problem, instance.config.tile_m, sm90a_skinny::tile_n_of(instance.config), plan.prepared);
      if (found == &instance) compiled.push_back(choice_of(instance));
    }
  }
  for (const sm90a::Instance& instance : sm90a::instances_for(problem)) {
    if (instance.config.prepared == plan.prepared && sm90a::is_for(instance.config, problem))
      compiled.push_back(wgmma_choice(instance));
  }
  return compiled;
}

// null: no compiled kernel, or the plan is for the other one.
const sm90a::Instance* instance_of(const Plan& plan) {
  if (plan.kernel != sm90a::kKernelName) return nullptr;
  const sm90a::Instance* const found = sm90a::find_instance(
      sm90a::instances_for(plan.problem), plan.shape.tile_m, plan.shape.tile_n,
      plan.shape.k_warpgroups, sm90a::multiplies_bf16(plan.problem), plan.prepared);
  return found != nullptr && sm90a::is_for(found->config, plan.problem) ? found : nullptr;
}

// null: the plan is for the other kernel.
const sm90a_skinny::Instance* skinny_instance_of(const Plan& plan) {
  if (plan.kernel != sm90a_skinny::kKernelName) return nullptr;
  return sm90a_skinny::find_instance(plan.problem, plan.shape.tile_m, plan.shape.tile_n,
                                     plan.prepared);
}

// docs/kernels/sm90a_skinny.md has the measured points that is_faster() rests on.
KernelChoice usual_for(const Plan& plan, int num_sms) {
  if (suits_skinny(plan).ok() && sm90a_skinny::is_faster(plan.problem, num_sms, plan.prepared))
    return choice_of(sm90a_skinny::choose_instance(plan.problem, num_sms, plan.prepared));
  return wgmma_choice(sm90a::choose_instance(plan.problem, num_sms, plan.prepared));
}

Status plan_sm90a(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const Expected<KernelChoice> kernel =
      choose_kernel(compiled_for(plan), usual_for(plan, caps.num_sms), constraints);
  if (!kernel) return kernel.status();
  const Expected<int64_t> most = most_ctas(constraints, caps);
  if (!most) return most.status();
  fill_in(plan, *kernel);
  if (const auto* const skinny = skinny_instance_of(plan)) {
    plan.shape.ctas = static_cast<int>(sm90a_skinny::ctas_for(plan.problem, skinny->config, *most));
  } else {
    plan.shape.ctas = sm90a::make_schedule(plan.problem, instance_of(plan)->config, *most).ctas;
  }
  return {};
}

sm90a::Workspace workspace_of(const Plan& plan, const sm90a::Config& config) {
  return sm90a::plan_workspace(core::resolve(plan.problem), config,
                               sm90a::make_schedule(plan.problem, config, plan.shape.ctas),
                               plan.unaligned);
}

int64_t workspace_bytes_sm90a(const Plan& plan) {
  if (const auto* const skinny = skinny_instance_of(plan))
    return sm90a_skinny::workspace_bytes(plan.problem, *skinny);
  const sm90a::Instance* instance = instance_of(plan);
  return instance == nullptr ? 0 : workspace_of(plan, instance->config).bytes;
}

Expected<std::vector<KernelLaunch>> launches_sm90a(const Plan& plan, const Buffers& buffers,
                                                   const uint8_t* prepared, void* workspace,
                                                   EncodeTiled encode_tiled,
                                                   int64_t* intermediate_bytes) {
  if (const auto* const skinny = skinny_instance_of(plan)) {
    DUALGEMM_TRY(suits_skinny(plan));
    *intermediate_bytes = 0;
    return sm90a_skinny::build_launches(core::resolve(plan.problem), buffers, workspace, *skinny,
                                        std::max<int64_t>(plan.shape.ctas, 1), prepared);
  }
  const sm90a::Instance* instance = instance_of(plan);
  if (instance == nullptr) {
    return Status::unsupported("plan",
                               fmt::format("tile {} x {} in {} k_warpgroups", plan.shape.tile_m,
                                           plan.shape.tile_n, plan.shape.k_warpgroups),
                               "must be one of the compiled kernels");
  }
  const sm90a::Workspace pieces = workspace_of(plan, instance->config);
  *intermediate_bytes = 2 * pieces.bytes;
  return sm90a::build_launches(
      core::resolve(plan.problem), buffers, pieces, workspace, *instance,
      sm90a::make_schedule(plan.problem, instance->config, plan.shape.ctas), encode_tiled,
      prepared);
}

// Codes lie in the order in which they are decoded, which depends on the number format.
PreparedFormat prepared_format_sm90a(const Problem& problem) {
  return sm90a::multiplies_bf16(problem) ? PreparedFormat::kSm90aBF16 : PreparedFormat::kSm90aF16;
}

constexpr WeightPacking kPacking{prepared_format_sm90a, hopper::packed_batch_bytes,
                                 hopper::pack_weights_launch};

}  // namespace

const FusedKernel& fused_kernel_sm90a() {
  static const FusedKernel kernel{Isa::kSm90a, kTensorCoreNumerics,   sm90a::supports,
                                  plan_sm90a,  workspace_bytes_sm90a, launches_sm90a,
                                  &kPacking};
  return kernel;
}

}  // namespace dualgemm::cuda
