// Kernels for prepared weights, as instances.cu has them for unpacked ones.
#include "cuda/kernels/sm100a_pair/entries.cuh"

#define DUALGEMM_SM100A_PAIR_ENTRY(...) \
  DUALGEMM_SM100A_PAIR_KERNEL(true, false, dual_gemm_sm100a_pair_prepared, __VA_ARGS__)
#define DUALGEMM_SM100A_PAIR_ROW(...) \
  DUALGEMM_SM100A_PAIR_INSTANCE(true, false, dual_gemm_sm100a_pair_prepared, __VA_ARGS__)

namespace dualgemm::cuda::sm100a_pair {

DUALGEMM_SM100A_PAIR_PREPARED_INSTANCES(DUALGEMM_SM100A_PAIR_ENTRY)

std::span<const Instance> prepared_instances() {
  static const Instance all[] = {DUALGEMM_SM100A_PAIR_PREPARED_INSTANCES(DUALGEMM_SM100A_PAIR_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a_pair
