// cutlass: Gate and Up as one operand of CUTLASS's NVFP4 GEMM, whose epilogue sees both products.
// B200 alone, in builds that have CUTLASS's kernels.
#include <optional>
#include <vector>

#include "cuda/cutlass/launch.hpp"
#include "cuda/kernel_choice.hpp"
#include "cuda/kernels/common/family.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/strategies/prepared_parts.hpp"
#include "cuda/strategies/strategies.hpp"
#include "plan/config_text.hpp"

namespace dualgemm::cuda {
namespace {

constexpr int kComputeCapability = 100;  // of PTX for sm_100a, which runs on no other

KernelChoice choice_of(const gated::Instance& instance) {
  return {.kernel = instance.kernel,
          .shape = {.tile_m = instance.tile_m,
                    .tile_n = gated::kHalfTile,
                    .tile_k = gated::kTileK,
                    .stages = instance.stages}};
}

// null: not in this build.
const gated::Instance* find_instance(const Plan& plan) {
  for (const gated::Instance* instance : gated::instances()) {
    if (plan.kernel_id == instance->kernel && plan.shape.tile_m == instance->tile_m)
      return instance;
  }
  return nullptr;
}

Expected<const gated::Instance*> checked_instance(const Plan& plan) {
  DUALGEMM_TRY(gated::supports(plan.problem));
  const gated::Instance* const instance = find_instance(plan);
  if (instance == nullptr) {
    return Status::unsupported("plan.kernel", plan.kernel,
                               "must be a CUTLASS kernel of this build, with its tile");
  }
  DUALGEMM_TRY(gated::suits(*instance, plan.problem));
  return instance;
}

bool is_pair(const gated::Instance& instance) { return instance.tile_m > gated::kHalfTile; }

class CutlassStrategy final : public Strategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kCutlass; }
  DeviceKind device() const noexcept override { return DeviceKind::kCuda; }
  const char* how_it_works() const noexcept override {
    return "one pass of CUTLASS's NVFP4 GEMM over Gate and Up, 128 rows of each by turns; an "
           "epilogue of ours joins both products";
  }
  const char* numerics(const Plan&) const noexcept override {
    return "16-blocks exact, four of them and the sum added with one truncation to FP32, steps in "
           "ascending k";
  }
  Preparation preparation(const Plan&) const noexcept override { return Preparation::kOptional; }

  Status supports(const core::CheckedProblem& problem, const DeviceCaps& caps) const override {
    if (caps.kind != DeviceKind::kCuda) {
      return Status::unsupported("device", name_of(caps.kind), "this strategy runs on a GPU");
    }
    if (caps.compute_capability != kComputeCapability) {
      return Status::unsupported("device", caps.name,
                                 "the CUTLASS kernels need compute capability 10.0");
    }
    if (problem.problem().batch_invariant) {
      return Status::unsupported("batch_invariant", "true",
                                 "one CTA or two share an MMA, as m decides");
    }
    return gated::supports(problem.problem());
  }

  Status plan(Plan& plan, const DeviceCaps& caps) const override {
    return plan_constrained(plan, caps, {});
  }

  Status plan_constrained(Plan& plan, const DeviceCaps& caps,
                          const PlanConstraints& constraints) const override {
    if (plan.isa != Isa::kSm100a) {
      return Status::unsupported("isa", name_of(plan.isa), "the CUTLASS kernels are for sm100a");
    }
    const bool has_pairs = caps.max_pairs != 0;
    if (constraints.tile_m > gated::kHalfTile)
      DUALGEMM_TRY(check_pairs("config", plan::text_of(constraints), caps));
    const int tile_m = gated::choose_tile_m(plan.problem, has_pairs);
    std::vector<KernelChoice> compiled;  // the first that has the rows is the usual one
    std::optional<KernelChoice> usual;
    for (const gated::Instance* instance : gated::instances()) {
      if (!gated::suits(*instance, plan.problem).ok() || (is_pair(*instance) && !has_pairs))
        continue;
      compiled.push_back(choice_of(*instance));
      if (!usual && instance->tile_m == tile_m) usual = compiled.back();
    }
    const Expected<KernelChoice> kernel =
        choose_kernel(compiled, usual.value_or(KernelChoice{}), constraints);
    if (!kernel) return kernel.status();
    fill_in(plan, *kernel);
    plan.threads = 1;  // of the host
    plan.regime = Regime::kTile;
    plan.workspace_bytes = workspace_bytes(plan);
    plan.prepared_bytes = prepared_descriptor(plan).bytes;
    return {};
  }

  int64_t workspace_bytes(const Plan& plan) const override {
    return gated::plan_workspace(core::resolve(plan.problem), plan.unaligned, plan.prepared).bytes;
  }

  PreparedDescriptor prepared_descriptor(const Plan& plan) const override {
    const Problem& p = plan.problem;
    return plan::describe_prepared(PreparedFormat::kGpuInterleaved, p,
                                   gated::weight_layout(p.n, p.k).bytes());
  }

  Status prepare(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
                 uint8_t* memory) const override {
    DUALGEMM_TRY(gated::supports(plan.problem));
    const PreparedDescriptor descriptor = prepared_descriptor(plan);
    const auto stream = static_cast<cudaStream_t>(buffers.stream);
    DUALGEMM_TRY(clear_parts(descriptor, memory, stream));
    DUALGEMM_TRY(
        enqueue(gated::interleave_weights(problem.resolved(), buffers,
                                          memory + kPreparedHeaderBytes, descriptor.expert_bytes),
                stream));
    return finish_parts(descriptor, memory, stream);
  }

  Status run(const Plan& plan, const core::CheckedProblem& problem, const Buffers& buffers,
             void* workspace, RunInfo* info) const override {
    const auto instance = checked_instance(plan);
    if (!instance) return instance.status();
    if (!(*instance)->any_epilogue && buffers.a_row_scale != nullptr) {
      return Status::unsupported("a_row_scale", "given", "the visitor tree takes none");
    }
    gated::Weights weights;
    if (plan.prepared) {
      weights = {first_part_of(buffers), prepared_descriptor(plan).expert_bytes};
      if (weights.first == nullptr)
        return Status::invalid("prepared", "null", "the plan was made for prepared weights");
    }
    static const Expected<EncodeTiled> encode = driver_encode_tiled();
    if (!encode) return encode.status();
    const gated::Workspace places =
        gated::plan_workspace(problem.resolved(), plan.unaligned, plan.prepared);
    const auto launches = gated::build_launches(problem.resolved(), buffers, weights, places,
                                                workspace, **instance, *encode);
    if (!launches) return launches.status();
    const auto stream = static_cast<cudaStream_t>(buffers.stream);
    for (const KernelLaunch& copy : launches->copies) DUALGEMM_TRY(enqueue(copy, stream));
    DUALGEMM_TRY(enqueue(launches->gemm, stream));
    if (info != nullptr) *info = {plan.isa, plan.regime, plan.threads, 2 * places.bytes};
    return {};
  }
};

}  // namespace

const Strategy& cutlass_strategy() noexcept {
  static const CutlassStrategy strategy;
  return strategy;
}

}  // namespace dualgemm::cuda
