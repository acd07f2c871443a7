// Persistent kernels, for unpacked weights and for prepared ones.
#include "cuda/kernels/sm100a_pair/entries.cuh"

#define DUALGEMM_SM100A_PAIR_ENTRY(...) \
  DUALGEMM_SM100A_PAIR_KERNEL(false, true, dual_gemm_sm100a_pair_persistent, __VA_ARGS__)
#define DUALGEMM_SM100A_PAIR_ROW(...) \
  DUALGEMM_SM100A_PAIR_INSTANCE(false, true, dual_gemm_sm100a_pair_persistent, __VA_ARGS__)
#define DUALGEMM_SM100A_PAIR_PREPARED_ENTRY(...) \
  DUALGEMM_SM100A_PAIR_KERNEL(true, true, dual_gemm_sm100a_pair_persistent_prepared, __VA_ARGS__)
#define DUALGEMM_SM100A_PAIR_PREPARED_ROW(...) \
  DUALGEMM_SM100A_PAIR_INSTANCE(true, true, dual_gemm_sm100a_pair_persistent_prepared, __VA_ARGS__)

namespace dualgemm::cuda::sm100a_pair {

DUALGEMM_SM100A_PAIR_PERSISTENT_INSTANCES(DUALGEMM_SM100A_PAIR_ENTRY)
DUALGEMM_SM100A_PAIR_PERSISTENT_INSTANCES(DUALGEMM_SM100A_PAIR_PREPARED_ENTRY)

std::span<const Instance> persistent_instances() {
  static const Instance all[] = {
      DUALGEMM_SM100A_PAIR_PERSISTENT_INSTANCES(DUALGEMM_SM100A_PAIR_ROW)
          DUALGEMM_SM100A_PAIR_PERSISTENT_INSTANCES(DUALGEMM_SM100A_PAIR_PREPARED_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a_pair
