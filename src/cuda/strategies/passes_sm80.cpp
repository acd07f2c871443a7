// fused_epilogue and fused_sequential by the mma.sync kernels of kernels/sm80: on every GPU of
// compute capability 8.0 or later, with the bits of its fused one, where that does not divide k
// between CTAs.
#include <span>
#include <vector>

#include "cuda/kernel_choice.hpp"
#include "cuda/kernels/sm80/family.hpp"
#include "cuda/strategies/passes_kernel.hpp"

namespace dualgemm::cuda {
namespace {

using sm80::Pass;

std::span<const Pass> sm80_passes_of(GateProduct gate) {
  static constexpr Pass kInMemory[] = {Pass::kGate, Pass::kUp}, kKept[] = {Pass::kSequential};
  if (gate == GateProduct::kInMemory) return kInMemory;
  return kKept;
}

Status supports_passes_sm80(const Problem& problem, GateProduct gate) {
  DUALGEMM_TRY(sm80::supports(problem));
  return gate == GateProduct::kInMemory ? sm80::supports_r1(problem) : Status();
}

Status plan_passes_sm80(Plan& plan, GateProduct gate, const DeviceCaps& caps,
                        const PlanConstraints& constraints) {
  const Pass pass = sm80_passes_of(gate).front();
  std::vector<KernelChoice> compiled;
  const sm80::InstanceRequest request{plan.problem, pass};
  for (const KernelShape& shape : sm80::shapes_for(request))
    compiled.push_back({KernelId::kSm80, shape});
  const sm80::Config& usual = sm80::choose_instance(request, caps).config;
  const Expected<KernelChoice> kernel =
      choose_kernel(compiled, {KernelId::kSm80, sm80::shape_of(usual)}, constraints);
  if (!kernel) return kernel.status();
  fill_in(plan, *kernel);
  return {};
}

int64_t workspace_bytes_of_passes_sm80(const Plan& plan, GateProduct gate) {
  return gate == GateProduct::kInMemory ? sm80::r1_bytes(plan.problem) : 0;
}

Expected<std::vector<KernelLaunch>> launches_of_passes_sm80(const Plan& plan, GateProduct gate,
                                                            const Buffers& buffers, void* workspace,
                                                            Expected<EncodeTiled> (*)()) {
  const core::ResolvedProblem problem = core::resolve(plan.problem);
  std::vector<KernelLaunch> launches;
  for (const Pass pass : sm80_passes_of(gate)) {
    const Expected<const sm80::Instance*> instance = sm80::instance_of(plan, pass);
    if (!instance) return instance.status();
    launches.push_back(sm80::build_launch({problem, buffers, **instance, workspace}));
  }
  return launches;
}

}  // namespace

const PassesKernel& passes_kernel_sm80() {
  static const PassesKernel kernel{Isa::kSm80, supports_passes_sm80, plan_passes_sm80,
                                   workspace_bytes_of_passes_sm80, launches_of_passes_sm80};
  return kernel;
}

}  // namespace dualgemm::cuda
