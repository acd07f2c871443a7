// fused on any GPU of compute capability 8.0 or later: one kernel, operands read in place.
#include "cuda/kernels/sm80/launch.hpp"
#include "cuda/strategies/fused_kernel.hpp"

namespace dualgemm::cuda {

const FusedKernel& fused_kernel_sm80() {
  static const FusedKernel kernel{Isa::kSm80, kTensorCoreNumerics, sm80::supports, nullptr};
  return kernel;
}

}  // namespace dualgemm::cuda
