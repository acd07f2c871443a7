// One kernel per Config, with an entry name that can be told from outside.
#include "cuda/kernels/sm100a_pair/entries.cuh"

#define DUALGEMM_SM100A_PAIR_ENTRY(...) \
  DUALGEMM_SM100A_PAIR_KERNEL(false, false, dual_gemm_sm100a_pair, __VA_ARGS__)
#define DUALGEMM_SM100A_PAIR_ROW(...) \
  DUALGEMM_SM100A_PAIR_INSTANCE(false, false, dual_gemm_sm100a_pair, __VA_ARGS__)

namespace dualgemm::cuda::sm100a_pair {

DUALGEMM_SM100A_PAIR_INSTANCES(DUALGEMM_SM100A_PAIR_ENTRY)

std::span<const Instance> instances() {
  static const Instance all[] = {DUALGEMM_SM100A_PAIR_INSTANCES(DUALGEMM_SM100A_PAIR_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a_pair
