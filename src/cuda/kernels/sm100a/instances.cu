// One kernel per Config, with an entry name that can be told from outside.
#include "cuda/kernels/sm100a/entries.cuh"

namespace dualgemm::cuda::sm100a {

DUALGEMM_SM100A_INSTANCES(DUALGEMM_SM100A_ENTRY)

std::span<const Instance> instances() {
  static const Instance all[] = {DUALGEMM_SM100A_INSTANCES(DUALGEMM_SM100A_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a
