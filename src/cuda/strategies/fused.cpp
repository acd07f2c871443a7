// fused on Blackwell: the operands' copies where the TMA unit needs them, then one kernel.
#include <fmt/format.h>

#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "cuda/strategies/strategies.hpp"

namespace dualgemm::cuda {
namespace {

// Asked for once: it does not change while a process lives.
Expected<EncodeTiled> encode_tiled() {
  static const Expected<EncodeTiled> function = driver_encode_tiled();
  return function;
}

class FusedStrategy final : public Strategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kFused; }
  DeviceKind device() const noexcept override { return DeviceKind::kCuda; }

  Status supports(const Problem& problem, const DeviceCaps& caps) const override {
    if (caps.kind != DeviceKind::kCuda) {
      return Status::unsupported("device", name_of(caps.kind), "this strategy runs on a GPU");
    }
    return sm100a::supports(problem);
  }

  Status plan(Plan& plan, const DeviceCaps& caps) const override {
    if (plan.isa != Isa::kSm100a) {
      return Status::unsupported("isa", name_of(plan.isa), "the fused kernel is one for sm100a");
    }
    const sm100a::Instance& instance = sm100a::choose_instance(plan.problem, caps.num_sms);
    plan.threads = 1;  // of the host; a GPU's are the instance's
    plan.regime = Regime::kTile;
    plan.tile_m = sm100a::kTileM;
    plan.tile_n = instance.config.tile_n;
    plan.slab_k = sm100a::kTileK;
    plan.stages = instance.stages;
    plan.workspace_bytes = workspace_bytes(plan);
    return {};
  }

  int64_t workspace_bytes(const Plan& plan) const override {
    return sm100a::plan_copies(core::resolve(plan.problem), plan.unaligned).workspace_bytes;
  }

  Expected<PreparedWeights> prepare(const Plan&, const Buffers&) const override {
    return Status::unsupported("plan.strategy", "fused", "has no weights to prepare on cuda");
  }

  Status run(const Plan& plan, const Buffers& buffers, void* workspace,
             RunInfo* info) const override {
    DUALGEMM_TRY(sm100a::supports(plan.problem));
    const sm100a::Instance* instance = sm100a::find_instance(plan.tile_n, plan.problem.d.type);
    if (instance == nullptr) {
      return Status::unsupported("plan.tile_n", std::to_string(plan.tile_n), "must be 64 or 128");
    }
    const Expected<EncodeTiled> encode = encode_tiled();
    if (!encode) return encode.status();
    const core::ResolvedProblem problem = core::resolve(plan.problem);
    const sm100a::Copies copies = sm100a::plan_copies(problem, plan.unaligned);
    const auto launches =
        sm100a::build_launches(problem, buffers, copies, workspace, *instance, *encode);
    if (!launches) return launches.status();
    for (const KernelLaunch& launch : *launches) {
      DUALGEMM_TRY(enqueue(launch, static_cast<cudaStream_t>(buffers.stream)));
    }
    if (info != nullptr) {
      *info = {plan.isa, plan.regime, plan.threads, 2 * copies.workspace_bytes};
    }
    return {};
  }
};

}  // namespace

std::span<const Strategy* const> strategies() {
  static const FusedStrategy fused;
  static const Strategy* const all[] = {&fused};
  return all;
}

}  // namespace dualgemm::cuda
