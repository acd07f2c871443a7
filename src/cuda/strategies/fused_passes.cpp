// fused_epilogue and fused_sequential: Gate's product is complete before Up's begins. In memory, as
// R1 in FP32, which the second launch's epilogue reads; or in one launch that keeps it.
#include <string>

#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"
#include "cuda/strategies/passes_kernel.hpp"
#include "cuda/strategies/strategies.hpp"

namespace dualgemm::cuda {
namespace {

// null: there is none for this instruction set.
const PassesKernel* passes_for(Isa isa) {
  for (const PassesKernel* kernel : {&passes_kernel_sm90a(), &passes_kernel_sm80()}) {
    if (kernel->isa == isa) return kernel;
  }
  return nullptr;
}

class FusedPassesStrategy final : public Strategy {
 public:
  FusedPassesStrategy(StrategyId id, GateProduct gate, const char* how_it_works)
      : id_(id), gate_(gate), how_it_works_(how_it_works) {}
  StrategyId id() const noexcept override { return id_; }
  DeviceKind device() const noexcept override { return DeviceKind::kCuda; }
  const char* how_it_works() const noexcept override { return how_it_works_; }
  const char* numerics(const Plan&) const noexcept override { return kTensorCoreNumerics; }
  Preparation preparation(const Plan&) const noexcept override { return Preparation::kNone; }

  Status supports(const core::CheckedProblem& problem, const DeviceCaps& caps) const override {
    if (caps.kind != DeviceKind::kCuda) {
      return Status::unsupported("device", name_of(caps.kind), "this strategy runs on a GPU");
    }
    return supports_problem(problem.problem());
  }

  Status plan(Plan& plan, const DeviceCaps& caps) const override {
    return plan_constrained(plan, caps, {});
  }

  Status plan_constrained(Plan& plan, const DeviceCaps& caps,
                          const PlanConstraints& constraints) const override {
    DUALGEMM_TRY(check_isa(plan));
    const PassesKernel& kernel = *passes_for(plan.isa);
    DUALGEMM_TRY(kernel.supports(plan.problem, gate_));
    plan.threads = 1;  // of the host
    plan.regime = Regime::kTile;
    DUALGEMM_TRY(kernel.plan(plan, gate_, caps, constraints));
    plan.workspace_bytes = workspace_bytes(plan);
    return {};
  }

  int64_t workspace_bytes(const Plan& plan) const override {
    const PassesKernel* const kernel = passes_for(plan.isa);
    return kernel == nullptr ? 0 : kernel->workspace_bytes(plan, gate_);
  }

  PreparedDescriptor prepared_descriptor(const Plan&) const override { return {}; }

  Status prepare(const Plan&, const core::CheckedProblem&, const Buffers&,
                 uint8_t*) const override {
    return Status::unsupported("plan.strategy", name_of(id_), "has no weights to prepare on cuda");
  }

  Status run(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
             void* workspace, RunInfo* info) const override {
    DUALGEMM_TRY(check_isa(plan));
    DUALGEMM_TRY(supports_problem(problem.problem()));
    const PassesKernel& kernel = *passes_for(plan.isa);
    DUALGEMM_TRY(kernel.supports(problem.problem(), gate_));
    const auto launches = kernel.launches(plan, gate_, buffers, workspace, driver_encode_tiled);
    if (!launches) return launches.status();
    for (const KernelLaunch& launch : *launches) {
      DUALGEMM_TRY(enqueue(launch, static_cast<cudaStream_t>(buffers.stream)));
    }
    if (info != nullptr) *info = {plan.isa, plan.regime, plan.threads, 2 * workspace_bytes(plan)};
    return {};
  }

 private:
  Status supports_problem(const Problem& problem) const {
    if (problem.grouping != Grouping::kNone) {
      return Status::unsupported("grouping", name_of(problem.grouping),
                                 "on a GPU only the strategy fused takes groups");
    }
    DUALGEMM_TRY(check_combine(problem));
    return passes_kernel_sm80().supports(problem, gate_);  // every GPU that has others has these
  }

  Status check_isa(const Plan& plan) const {
    if (passes_for(plan.isa) != nullptr) return {};
    return Status::unsupported("isa", name_of(plan.isa),
                               std::string(name_of(id_)) + " has kernels for sm80 and sm90a");
  }

  StrategyId id_;
  GateProduct gate_;
  const char* how_it_works_;
};

}  // namespace

const Strategy& fused_epilogue_strategy() noexcept {
  static const FusedPassesStrategy strategy(
      StrategyId::kFusedEpilogue, GateProduct::kInMemory,
      "Gate product to memory; the Up product's epilogue reads it and writes D");
  return strategy;
}
const Strategy& fused_sequential_strategy() noexcept {
  static const FusedPassesStrategy strategy(
      StrategyId::kFusedSequential, GateProduct::kKept,
      "per tile first all of Gate, then all of Up, one epilogue: A is read twice, nothing between "
      "is stored");
  return strategy;
}

}  // namespace dualgemm::cuda
