// One kernel per Config, with an entry name that can be told from outside.
#include "cuda/kernels/sm100a_pair/entries.cuh"

namespace dualgemm::cuda::sm100a_pair {

DUALGEMM_SM100A_PAIR_INSTANCES(DUALGEMM_SM100A_PAIR_ENTRY)

std::span<const Instance> instances() {
  static const Instance all[] = {DUALGEMM_SM100A_PAIR_INSTANCES(DUALGEMM_SM100A_PAIR_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a_pair
