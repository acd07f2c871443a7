// fused on any GPU of compute capability 8.0 or later: one kernel, operands read in place.
#include "cuda/strategies/fused_kernel.hpp"
#include "cuda/strategies/sm80_plan.hpp"

namespace dualgemm::cuda {
namespace {

Status plan_fused_sm80(Plan& plan, const DeviceCaps&, const PlanConstraints& constraints) {
  return plan_sm80(plan, sm80::fused_pass(plan.problem), constraints);
}

int64_t workspace_bytes_sm80(const Plan& plan) {
  const Expected<const sm80::Instance*> instance = find_sm80(plan, sm80::fused_pass(plan.problem));
  return instance ? sm80::workspace_bytes(plan.problem, **instance) : 0;
}

Expected<std::vector<KernelLaunch>> launches_sm80(const Plan& plan, const Buffers& buffers,
                                                  const uint8_t*, void* workspace, EncodeTiled,
                                                  int64_t* intermediate_bytes) {
  const Expected<const sm80::Instance*> instance = find_sm80(plan, sm80::fused_pass(plan.problem));
  if (!instance) return instance.status();
  *intermediate_bytes = 0;
  return sm80::build_fused(core::resolve(plan.problem), buffers, workspace, **instance);
}

}  // namespace

const FusedKernel& fused_kernel_sm80() {
  static const FusedKernel kernel{Isa::kSm80,      kTensorCoreNumerics,  sm80::supports,
                                  plan_fused_sm80, workspace_bytes_sm80, launches_sm80};
  return kernel;
}

}  // namespace dualgemm::cuda
