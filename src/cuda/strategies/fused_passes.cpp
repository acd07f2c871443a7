// fused_epilogue and fused_sequential: Gate's product is complete before Up's begins. In memory, as
// R1 in FP32, which the second launch's epilogue reads; or in one launch that keeps it. By the
// mma.sync kernels of kernels/sm80, so on every GPU of compute capability 8.0 or later, and with
// the same bits as its fused one.
#include <span>
#include <string>
#include <vector>

#include "cuda/strategies/fused_kernel.hpp"
#include "cuda/strategies/sm80_plan.hpp"
#include "cuda/strategies/strategies.hpp"

namespace dualgemm::cuda {
namespace {

using sm80::Pass;

constexpr Pass kEpiloguePasses[] = {Pass::kGate, Pass::kUp};
constexpr Pass kSequentialPasses[] = {Pass::kSequential};

class FusedPassesStrategy final : public Strategy {
 public:
  FusedPassesStrategy(StrategyId id, std::span<const Pass> passes, const char* how_it_works)
      : id_(id), passes_(passes), how_it_works_(how_it_works) {}
  StrategyId id() const noexcept override { return id_; }
  DeviceKind device() const noexcept override { return DeviceKind::kCuda; }
  const char* how_it_works() const noexcept override { return how_it_works_; }
  const char* numerics(const Plan&) const noexcept override { return kTensorCoreNumerics; }
  Preparation preparation(const Plan&) const noexcept override { return Preparation::kNone; }

  Status supports(const Problem& problem, const DeviceCaps& caps) const override {
    if (caps.kind != DeviceKind::kCuda) {
      return Status::unsupported("device", name_of(caps.kind), "this strategy runs on a GPU");
    }
    return supports_problem(problem);
  }

  Status plan(Plan& plan, const DeviceCaps& caps) const override {
    return plan_constrained(plan, caps, {});
  }

  Status plan_constrained(Plan& plan, const DeviceCaps&,
                          const PlanConstraints& constraints) const override {
    DUALGEMM_TRY(check_isa(plan));
    DUALGEMM_TRY(plan_sm80(plan, passes_.front(), constraints));
    plan.threads = 1;  // of the host
    plan.regime = Regime::kTile;
    plan.workspace_bytes = workspace_bytes(plan);
    return {};
  }

  int64_t workspace_bytes(const Plan& plan) const override {
    return stores_r1() ? sm80::r1_bytes(plan.problem) : 0;
  }

  PreparedDescriptor prepared_descriptor(const Plan&) const override { return {}; }

  Status prepare(const Plan&, const Buffers&, uint8_t*) const override {
    return Status::unsupported("plan.strategy", name_of(id_), "has no weights to prepare on cuda");
  }

  Status run(const Plan& plan, const Buffers& buffers, void* workspace,
             RunInfo* info) const override {
    DUALGEMM_TRY(check_isa(plan));
    DUALGEMM_TRY(supports_problem(plan.problem));
    const core::ResolvedProblem problem = core::resolve(plan.problem);
    std::vector<KernelLaunch> launches;
    for (const Pass pass : passes_) {
      const Expected<const sm80::Instance*> instance = find_sm80(plan, pass);
      if (!instance) return instance.status();
      launches.push_back(sm80::build_launch(problem, buffers, workspace, **instance));
    }
    for (const KernelLaunch& launch : launches) {
      DUALGEMM_TRY(enqueue(launch, static_cast<cudaStream_t>(buffers.stream)));
    }
    if (info != nullptr) *info = {plan.isa, plan.regime, plan.threads, 2 * workspace_bytes(plan)};
    return {};
  }

 private:
  bool stores_r1() const noexcept { return passes_.size() == 2; }

  Status supports_problem(const Problem& problem) const {
    if (problem.grouping != Grouping::kNone) {
      return Status::unsupported("grouping", name_of(problem.grouping),
                                 "on a GPU only the strategy fused takes groups");
    }
    DUALGEMM_TRY(check_combine(problem));
    DUALGEMM_TRY(sm80::supports(problem));
    return stores_r1() ? sm80::supports_r1(problem) : Status();
  }

  Status check_isa(const Plan& plan) const {
    if (plan.isa == Isa::kSm80) return {};
    return Status::unsupported("isa", name_of(plan.isa),
                               std::string(name_of(id_)) + " has kernels for sm80");
  }

  StrategyId id_;
  std::span<const Pass> passes_;
  const char* how_it_works_;
};

}  // namespace

const Strategy& fused_epilogue_strategy() noexcept {
  static const FusedPassesStrategy strategy(
      StrategyId::kFusedEpilogue, kEpiloguePasses,
      "Gate product to memory; the Up product's epilogue reads it and writes D");
  return strategy;
}
const Strategy& fused_sequential_strategy() noexcept {
  static const FusedPassesStrategy strategy(
      StrategyId::kFusedSequential, kSequentialPasses,
      "per tile first all of Gate, then all of Up, one epilogue: A is read twice, nothing between "
      "is stored");
  return strategy;
}

}  // namespace dualgemm::cuda
