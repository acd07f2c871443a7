// fused on Hopper. Few rows of A: one kernel. Else copies where the TMA unit needs them, A's
// preparation, then one kernel.
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"

namespace dualgemm::cuda {

const FusedKernel& fused_kernel_sm90a() {
  static const FusedKernel kernel{Isa::kSm90a, kTensorCoreNumerics, sm90a::supports, nullptr,
                                  &kPackingFor16Bits};
  return kernel;
}

}  // namespace dualgemm::cuda
