// The kernels that read weights as they lie.
#include "cuda/kernels/sm80/entries.cuh"

namespace dualgemm::cuda::sm80 {

DUALGEMM_SM80_FUSED(DUALGEMM_SM80_ENTRY)
DUALGEMM_SM80_SEQUENTIAL(DUALGEMM_SM80_ENTRY)

std::span<const Instance> unpacked_instances() {
  static const Instance all[] = {DUALGEMM_SM80_FUSED(DUALGEMM_SM80_ROW) DUALGEMM_SM80_SEQUENTIAL(
      DUALGEMM_SM80_ROW) DUALGEMM_SM80_ONE_PRODUCT(DUALGEMM_SM80_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm80
