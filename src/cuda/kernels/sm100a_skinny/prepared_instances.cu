// The kernels for prepared weights, one per Config.
#include "cuda/kernels/sm100a_skinny/entries.cuh"

namespace dualgemm::cuda::sm100a_skinny {

DUALGEMM_SM100A_SKINNY_PREPARED_INSTANCES(DUALGEMM_SM100A_SKINNY_ENTRY)

std::span<const Instance> prepared_instances() {
  static const Instance all[] = {
      DUALGEMM_SM100A_SKINNY_PREPARED_INSTANCES(DUALGEMM_SM100A_SKINNY_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a_skinny
