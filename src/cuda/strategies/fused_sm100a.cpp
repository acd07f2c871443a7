// fused on Blackwell: the operands' copies where the TMA unit needs them, then one kernel.
#include <fmt/format.h>

#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/kernels/sm100a_skinny/launch.hpp"
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

KernelChoice choice_of(const sm100a_skinny::Instance& instance) {
  return {.kernel = sm100a_skinny::kKernelName,
          .shape = {.tile_m = instance.config.tile_m,
                    .tile_n = instance.config.tile_n,
                    .tile_k = sm100a_skinny::kTileK,
                    .stages = instance.stages}};
}

// Bits that must not depend on m come from one kernel: that an MMA gives the same ones with its
// operands in the other roles is so in the interpreter, and nobody promises it.
Status suits_skinny(const Problem& problem) {
  if (problem.batch_invariant) {
    return Status::unsupported("batch_invariant", "true",
                               "the kernel for few rows is not promised to be");
  }
  return sm100a_skinny::supports(problem);
}

// The sm_100a kernel's tiles, then those for few rows. A caller's constraints choose among them, so
// that either kernel can stand in for the other.
std::vector<KernelChoice> compiled_for(const Problem& problem) {
  std::vector<KernelChoice> compiled;
  for (const sm100a::Instance& instance : sm100a::instances()) {
    const auto* const found = sm100a::find_instance(instance.config.tile_n, problem.d.type);
    if (found == &instance) compiled.push_back(choice_of(instance));
  }
  if (!suits_skinny(problem).ok()) return compiled;
  for (const sm100a_skinny::Instance& instance : sm100a_skinny::instances()) {
    if (instance.config.tile_m >= problem.m) compiled.push_back(choice_of(instance));
  }
  return compiled;
}

KernelChoice usual_for(const Problem& problem, int num_sms) {
  if (suits_skinny(problem).ok() && sm100a_skinny::is_faster(problem, num_sms))
    return choice_of(sm100a_skinny::choose_instance(problem, num_sms));
  return choice_of(sm100a::choose_instance(problem, num_sms));
}

Status plan_sm100a(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  const Expected<KernelChoice> kernel =
      choose_kernel(compiled_for(plan.problem), usual_for(plan.problem, caps.num_sms), constraints);
  if (!kernel) return kernel.status();
  fill_in(plan, *kernel);
  return {};
}

sm100a::Copies copies_of(const Plan& plan) {
  return sm100a::plan_copies(core::resolve(plan.problem), plan.unaligned);
}

constexpr const char* kNumerics =
    "16-blocks exact, four of them and the sum added with one truncation to FP32, steps in "
    "ascending k: the same bits for every tile and every m of a kernel";

int64_t workspace_bytes_sm100a(const Plan& plan) { return copies_of(plan).workspace_bytes; }

Expected<std::vector<KernelLaunch>> launches_sm100a(const Plan& plan, const Buffers& buffers,
                                                    const uint8_t*, void* workspace,
                                                    EncodeTiled encode_tiled,
                                                    int64_t* intermediate_bytes) {
  const sm100a::Copies copies = copies_of(plan);
  *intermediate_bytes = 2 * copies.workspace_bytes;
  if (plan.kernel == sm100a_skinny::kKernelName) {
    DUALGEMM_TRY(suits_skinny(plan.problem));
    const sm100a_skinny::Instance* const skinny =
        sm100a_skinny::find_instance(plan.problem, plan.shape.tile_m, plan.shape.tile_n);
    if (skinny == nullptr) {
      return Status::unsupported("plan.shape",
                                 fmt::format("{} x {}", plan.shape.tile_m, plan.shape.tile_n),
                                 "must be a compiled tile of the kernel for few rows that has m");
    }
    return sm100a_skinny::build_launches(core::resolve(plan.problem), buffers, copies, workspace,
                                         *skinny, encode_tiled);
  }
  const sm100a::Instance* instance = sm100a::find_instance(plan.shape.tile_n, plan.problem.d.type);
  if (instance == nullptr) {
    return Status::unsupported("plan.shape.tile_n", std::to_string(plan.shape.tile_n),
                               "must be 64 or 128");
  }
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
