// fused on Blackwell: the operands' copies where the TMA unit needs them, then one kernel, of one
// CTA per tile or of a pair.
#include <string>

#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/kernels/sm100a_pair/extents.hpp"
#include "cuda/kernels/sm100a_pair/launch.hpp"
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

KernelChoice choice_of(const sm100a_pair::Instance& instance) {
  return {.kernel = sm100a_pair::kKernelName,
          .shape = {.tile_m = sm100a_pair::kTileM,
                    .tile_n = instance.config.tile_n,
                    .tile_k = sm100a_pair::kTileK,
                    .stages = instance.stages}};
}

std::vector<KernelChoice> compiled_for(const Problem& problem) {
  const DataType output = problem.d.type;
  std::vector<KernelChoice> compiled;
  for (const sm100a::Instance& instance : sm100a::instances()) {
    if (sm100a::find_instance(instance.config.tile_n, output) == &instance)
      compiled.push_back(choice_of(instance));
  }
  if (!sm100a_pair::supports(problem).ok()) return compiled;
  for (const sm100a_pair::Instance& instance : sm100a_pair::instances()) {
    if (sm100a_pair::find_instance(instance.config.tile_n, output) == &instance)
      compiled.push_back(choice_of(instance));
  }
  return compiled;
}

KernelChoice usual_for(const Problem& p, int num_sms) {
  const sm100a_pair::TileChoice tile = sm100a_pair::choose_tile(p.m, p.n, p.k, p.l, num_sms);
  if (tile.ctas == sm100a_pair::kPairCtas && sm100a_pair::supports(p).ok())
    return choice_of(*sm100a_pair::find_instance(tile.tile_n, p.d.type));
  return choice_of(*sm100a::find_instance(tile.tile_n, p.d.type));
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
    "ascending k: the same bits for every tile and every m";

int64_t workspace_bytes_sm100a(const Plan& plan) { return copies_of(plan).workspace_bytes; }

Expected<std::vector<KernelLaunch>> launches_sm100a(const Plan& plan, const Buffers& buffers,
                                                    const uint8_t*, void* workspace,
                                                    EncodeTiled encode_tiled,
                                                    int64_t* intermediate_bytes) {
  const core::ResolvedProblem problem = core::resolve(plan.problem);
  const sm100a::Copies copies = copies_of(plan);
  *intermediate_bytes = 2 * copies.workspace_bytes;
  const DataType output = plan.problem.d.type;
  if (plan.kernel == sm100a_pair::kKernelName) {
    DUALGEMM_TRY(sm100a_pair::supports(plan.problem));
    if (const auto* const instance = sm100a_pair::find_instance(plan.shape.tile_n, output))
      return sm100a_pair::build_launches(problem, buffers, copies, workspace, *instance,
                                         encode_tiled);
  } else if (const auto* const instance = sm100a::find_instance(plan.shape.tile_n, output)) {
    return sm100a::build_launches(problem, buffers, copies, workspace, *instance, encode_tiled);
  }
  return Status::unsupported("plan.shape.tile_n", std::to_string(plan.shape.tile_n),
                             "must be 64 or 128");
}

}  // namespace

const FusedKernel& fused_kernel_sm100a() {
  static const FusedKernel kernel{Isa::kSm100a,           kNumerics,
                                  sm100a::supports,       plan_sm100a,
                                  workspace_bytes_sm100a, launches_sm100a};
  return kernel;
}

}  // namespace dualgemm::cuda
