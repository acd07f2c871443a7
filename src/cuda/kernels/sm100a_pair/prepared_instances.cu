// Kernels for prepared weights, as instances.cu has them for unpacked ones.
#include "cuda/kernels/sm100a_pair/entries.cuh"

namespace dualgemm::cuda::sm100a_pair {

DUALGEMM_SM100A_PAIR_PREPARED_INSTANCES(DUALGEMM_SM100A_PAIR_PREPARED_ENTRY)

std::span<const Instance> prepared_instances() {
  static const Instance all[] = {
      DUALGEMM_SM100A_PAIR_PREPARED_INSTANCES(DUALGEMM_SM100A_PAIR_PREPARED_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a_pair
