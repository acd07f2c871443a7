// fused on any GPU of compute capability 8.0 or later: one kernel, operands as they lie.
#include <fmt/format.h>

#include "cuda/kernels/sm80/launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"

namespace dualgemm::cuda {
namespace {

void plan_sm80(Plan& plan, const DeviceCaps&) {
  const sm80::Instance& instance = sm80::choose_instance(plan.problem);
  plan.tile_m = sm80::tile_m_of(instance.config);
  plan.tile_n = sm80::tile_n_of(instance.config);
  plan.slab_k = sm80::kBlockK;
}

int64_t workspace_bytes_sm80(const Plan&) { return 0; }

Expected<std::vector<KernelLaunch>> launches_sm80(const Plan& plan, const Buffers& buffers, void*,
                                                  EncodeTiled, int64_t* intermediate_bytes) {
  const sm80::Instance* instance = sm80::find_instance(plan.problem.a.type, plan.tile_m);
  if (instance == nullptr) {
    return Status::unsupported("plan.tile_m", fmt::format("{}", plan.tile_m), "must be 8 or 64");
  }
  *intermediate_bytes = 0;
  return std::vector{sm80::build_launch(core::resolve(plan.problem), buffers, *instance)};
}

}  // namespace

const FusedKernel& fused_kernel_sm80() {
  static const FusedKernel kernel{Isa::kSm80, sm80::supports, plan_sm80, workspace_bytes_sm80,
                                  launches_sm80};
  return kernel;
}

}  // namespace dualgemm::cuda
