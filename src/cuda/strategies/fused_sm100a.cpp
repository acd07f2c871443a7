// fused on Blackwell: the operands' copies where the TMA unit needs them, then one kernel: for few
// rows, of one CTA per tile, of a pair, or for 16-bit A.
#include "cuda/families.hpp"
#include "cuda/kernels/blackwell/checks.hpp"
#include "cuda/kernels/blackwell/packed_weights.hpp"
#include "cuda/kernels/sm100a_w4a16/launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"
#include "plan/config_text.hpp"

namespace dualgemm::cuda {
namespace {

// 16-bit A has kernels of its own.
bool is_w4a16(const Problem& problem) { return problem.a.type != DataType::kE2M1; }

// What the kernel of the most problems takes; of groups with A in NVFP4 that for few rows takes all
// that that of pairs does.
Status supports_sm100a(const Problem& problem) {
  if (is_w4a16(problem)) return sm100a_w4a16::supports(problem);
  return problem.grouping == Grouping::kNone ? blackwell::check_without_groups(problem)
                                             : blackwell::check_with_groups(problem);
}

bool demands_pairs(const PlanConstraints& constraints) {
  if (constraints.kernel.any()) return false;
  for (const KernelFamily* const family : families()) {
    if (family->pairs && constraints.kernel.contains(family->id)) return true;
  }
  return false;
}

// Prepared weights without groups, of more rows than the kernel for few of them has, are for pairs.
Status check_sm100a(const Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints) {
  if (is_w4a16(plan.problem)) return {};
  if (demands_pairs(constraints))
    DUALGEMM_TRY(check_pairs("config", plan::text_of(constraints), caps));
  if (!plan.prepared || plan.problem.grouping != Grouping::kNone) return {};
  const KernelRequest request{plan.problem, plan.prepared, plan.unaligned, caps};
  if (find_family(KernelId::kSm100aSkinnyPersistent, Isa::kSm100a)->supports(request).ok())
    return {};
  return find_family(KernelId::kSm100aPair, Isa::kSm100a)->supports(request);
}

constexpr const char* kNumerics =
    "NVFP4 A: 16-blocks exact, four of them and the sum added with one truncation to FP32, steps "
    "in "
    "ascending k: the same bits for every tile and every m of a kernel; 16-bit A: weights exact in "
    "A's type, products added in FP32 in the order of the tensor cores";

PreparedFormat prepared_format_sm100a(const Problem&) { return PreparedFormat::kSm100a; }

constexpr WeightPacking kPackingSm100a{prepared_format_sm100a, blackwell::packed_batch_bytes,
                                       blackwell::pack_weights_launch};

}  // namespace

const FusedKernel& fused_kernel_sm100a() {
  static const FusedKernel kernel{Isa::kSm100a, kNumerics, supports_sm100a, check_sm100a,
                                  &kPackingSm100a};
  return kernel;
}

}  // namespace dualgemm::cuda
