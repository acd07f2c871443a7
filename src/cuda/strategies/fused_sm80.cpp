// fused on any GPU of compute capability 8.0 or later: one kernel, operands read in place.
#include "cuda/kernels/packed/packed_weights.hpp"
#include "cuda/kernels/sm80/launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"

namespace dualgemm::cuda {
namespace {

// Codes lie in the order in which they are decoded, which depends on the number format.
PreparedFormat format_of_packed(const Problem& problem) {
  return multiplies_bf16(problem) ? PreparedFormat::kSm90aBF16 : PreparedFormat::kSm90aF16;
}

}  // namespace

constinit const WeightPacking kPackingFor16Bits{format_of_packed, packed_batch_bytes,
                                                pack_weights_launch};

const FusedKernel& fused_kernel_sm80() {
  static const FusedKernel kernel{Isa::kSm80, kTensorCoreNumerics, sm80::supports, nullptr,
                                  &kPackingFor16Bits};
  return kernel;
}

}  // namespace dualgemm::cuda
