// The kernels that read prepared weights.
#include "cuda/kernels/sm80/entries.cuh"

namespace dualgemm::cuda::sm80 {

DUALGEMM_SM80_PREPARED(DUALGEMM_SM80_ENTRY)

std::span<const Instance> prepared_instances() {
  static const Instance all[] = {DUALGEMM_SM80_PREPARED(DUALGEMM_SM80_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm80
