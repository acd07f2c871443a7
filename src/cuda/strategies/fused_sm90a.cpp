// fused on Hopper. Few rows of A: one kernel. Else copies where the TMA unit needs them, A's
// preparation, then one kernel.
#include "cuda/kernels/hopper/packed_weights.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"

namespace dualgemm::cuda {
namespace {

// Codes lie in the order in which they are decoded, which depends on the number format.
PreparedFormat prepared_format_sm90a(const Problem& problem) {
  return sm90a::multiplies_bf16(problem) ? PreparedFormat::kSm90aBF16 : PreparedFormat::kSm90aF16;
}

constexpr WeightPacking kPacking{prepared_format_sm90a, hopper::packed_batch_bytes,
                                 hopper::pack_weights_launch};

}  // namespace

const FusedKernel& fused_kernel_sm90a() {
  static const FusedKernel kernel{Isa::kSm90a, kTensorCoreNumerics, sm90a::supports, nullptr,
                                  &kPacking};
  return kernel;
}

}  // namespace dualgemm::cuda
