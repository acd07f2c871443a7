// fused on Blackwell: the operands' copies where the TMA unit needs them, then one kernel.
#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"
#include "cuda/strategies/kernel_choice.hpp"

namespace dualgemm::cuda {
namespace {

KernelChoice choice_of(const sm100a::Instance& instance) {
  return {.kernel = sm100a::kKernelName,
          .shape = {.tile_m = sm100a::kTileM,
                    .tile_n = instance.config.tile_n,
                    .tile_k = sm100a::kTileK,
                    .stages = instance.stages}};
}

Status plan_sm100a(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const sm100a::Instance& usual = sm100a::choose_instance(plan.problem, caps.num_sms);
  std::vector<KernelChoice> compiled;
  for (const sm100a::Instance& instance : sm100a::instances()) {
    if (instance.config.output == usual.config.output) compiled.push_back(choice_of(instance));
  }
  const Expected<KernelChoice> kernel = choose_kernel(compiled, choice_of(usual), constraints);
  if (!kernel) return kernel.status();
  fill_in(plan, *kernel);
  return {};
}

sm100a::Copies copies_of(const Plan& plan) {
  return sm100a::plan_copies(core::resolve(plan.problem), plan.unaligned);
}

constexpr const char* kNumerics =
    "16-blocks exact, four of them and the sum added with one truncation to FP32, steps in "
    "ascending k: the same bits for every tile and every m";

int64_t workspace_bytes_sm100a(const Plan& plan) { return copies_of(plan).workspace_bytes; }

Expected<std::vector<KernelLaunch>> launches_sm100a(const Plan& plan, const Buffers& buffers,
                                                    const uint8_t*, void* workspace,
                                                    EncodeTiled encode_tiled,
                                                    int64_t* intermediate_bytes) {
  const sm100a::Instance* instance = sm100a::find_instance(plan.shape.tile_n, plan.problem.d.type);
  if (instance == nullptr) {
    return Status::unsupported("plan.shape.tile_n", std::to_string(plan.shape.tile_n),
                               "must be 64 or 128");
  }
  const sm100a::Copies copies = copies_of(plan);
  *intermediate_bytes = 2 * copies.workspace_bytes;
  return sm100a::build_launches(core::resolve(plan.problem), buffers, copies, workspace, *instance,
                                encode_tiled);
}

}  // namespace

const FusedKernel& fused_kernel_sm100a() {
  static const FusedKernel kernel{Isa::kSm100a,           kNumerics,
                                  sm100a::supports,       plan_sm100a,
                                  workspace_bytes_sm100a, launches_sm100a};
  return kernel;
}

}  // namespace dualgemm::cuda
