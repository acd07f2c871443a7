// fused: one kernel from packed operands to D, with what must be copied or prepared before it.
#include <string>

#include "cuda/families.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"
#include "cuda/strategies/prepared_parts.hpp"
#include "cuda/strategies/strategies.hpp"

namespace dualgemm::cuda {
namespace {

// null: there is none for this instruction set.
const FusedKernel* kernel_for(Isa isa) {
#define DUALGEMM_FUSED_KERNEL(name, isa, runs) &fused_kernel_##name(),
  static const FusedKernel* const kernels[] = {DUALGEMM_CUDA_ARCHITECTURES(DUALGEMM_FUSED_KERNEL)};
#undef DUALGEMM_FUSED_KERNEL
  for (const FusedKernel* kernel : kernels) {
    if (kernel->isa == isa) return kernel;
  }
  return nullptr;
}

Status no_kernel(Isa isa) {
#define DUALGEMM_NAME(name, isa, runs) " " #name
  return Status::unsupported(
      "isa", name_of(isa), "the fused kernels are for" DUALGEMM_CUDA_ARCHITECTURES(DUALGEMM_NAME));
#undef DUALGEMM_NAME
}

class FusedStrategy final : public Strategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kFused; }
  DeviceKind device() const noexcept override { return DeviceKind::kCuda; }
  const char* how_it_works() const noexcept override {
    return "one pass: A is read once, both accumulators stay on the SM, the activation is applied "
           "to the finished tile, only D is written";
  }
  const char* numerics(const Plan& plan) const noexcept override {
    const FusedKernel* kernel = kernel_for(plan.isa);
    return kernel == nullptr ? "" : kernel->numerics;
  }
  Preparation preparation(const Plan& plan) const noexcept override {
    const FusedKernel* kernel = kernel_for(plan.isa);
    const bool packs = kernel != nullptr && kernel->packing != nullptr;
    return packs ? Preparation::kOptional : Preparation::kNone;
  }

  Status supports(const core::CheckedProblem&, const DeviceCaps& caps) const override {
    if (caps.kind == DeviceKind::kCuda) return {};  // plan() asks the instruction set's kernel
    return Status::unsupported("device", name_of(caps.kind), "this strategy runs on a GPU");
  }

  Status plan(Plan& plan, const DeviceCaps& caps) const override {
    return plan_constrained(plan, caps, {});
  }

  Status plan_constrained(Plan& plan, const DeviceCaps& caps,
                          const PlanConstraints& constraints) const override {
    const FusedKernel* kernel = kernel_for(plan.isa);
    if (kernel == nullptr) return no_kernel(plan.isa);
    DUALGEMM_TRY(kernel->supports(plan.problem));
    plan.threads = 1;  // of the host; a GPU's are the instance's
    plan.regime = Regime::kTile;
    if (kernel->check != nullptr) DUALGEMM_TRY(kernel->check(plan, caps, constraints));
    DUALGEMM_TRY(choose_family(plan, caps, constraints));
    plan.workspace_bytes = workspace_bytes(plan);
    plan.prepared_bytes = prepared_descriptor(plan).bytes;
    return {};
  }

  // 0 of a plan that was edited to what run() refuses.
  int64_t workspace_bytes(const Plan& plan) const override {
    const FusedKernel* const kernel = kernel_for(plan.isa);
    const KernelFamily* const family = find_family(plan.kernel_id, plan.isa);
    if (kernel == nullptr || family == nullptr || !kernel->supports(plan.problem).ok()) return 0;
    return family->workspace_bytes(plan);
  }

  PreparedDescriptor prepared_descriptor(const Plan& plan) const override {
    const FusedKernel* kernel = kernel_for(plan.isa);
    if (kernel == nullptr || kernel->packing == nullptr) return {};
    return plan::describe_prepared(kernel->packing->format(plan.problem), plan.problem,
                                   kernel->packing->batch_bytes(plan.problem));
  }

  Status prepare(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
                 uint8_t* memory) const override {
    const FusedKernel* kernel = kernel_for(plan.isa);
    if (kernel == nullptr) return no_kernel(plan.isa);
    DUALGEMM_TRY(kernel->supports(plan.problem));
    const PreparedDescriptor descriptor = prepared_descriptor(plan);
    const auto stream = static_cast<cudaStream_t>(buffers.stream);
    DUALGEMM_TRY(clear_parts(descriptor, memory, stream));
    DUALGEMM_TRY(
        enqueue(kernel->packing->launch(problem.resolved(), buffers, memory + kPreparedHeaderBytes),
                stream));
    return finish_parts(descriptor, memory, stream);
  }

  Status run(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
             void* workspace, RunInfo* info) const override {
    const FusedKernel* kernel = kernel_for(plan.isa);
    if (kernel == nullptr) return no_kernel(plan.isa);
    DUALGEMM_TRY(kernel->supports(plan.problem));
    const uint8_t* const prepared = plan.prepared ? first_part_of(buffers) : nullptr;
    if (plan.prepared && prepared == nullptr) {
      return Status::invalid("prepared", "null", "the plan was made for prepared weights");
    }
    const KernelFamily* const family = find_family(plan.kernel_id, plan.isa);
    if (family == nullptr) {
      return Status::unsupported("plan.kernel", plan.kernel,
                                 std::string("must be a kernel of fused on ") + name_of(plan.isa));
    }
    const Expected<EncodeTiled> encode = driver_encode_tiled();
    if (!encode) return encode.status();
    const auto work =
        family->launches({plan, problem.resolved(), buffers, prepared, workspace, *encode});
    if (!work) return work.status();
    for (const KernelLaunch& launch : work->launches) {
      DUALGEMM_TRY(enqueue(launch, static_cast<cudaStream_t>(buffers.stream)));
    }
    if (info != nullptr) *info = {plan.isa, plan.regime, plan.threads, work->intermediate_bytes};
    return {};
  }
};

}  // namespace

const Strategy& fused_strategy() noexcept {
  static const FusedStrategy strategy;
  return strategy;
}

}  // namespace dualgemm::cuda
