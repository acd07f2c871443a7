// One kernel per Config, with an entry name that can be told from outside.
#include "cuda/kernels/sm100a_skinny/entries.cuh"

namespace dualgemm::cuda::sm100a_skinny {

DUALGEMM_SM100A_SKINNY_INSTANCES(DUALGEMM_SM100A_SKINNY_ENTRY)

std::span<const Instance> instances() {
  static const Instance all[] = {DUALGEMM_SM100A_SKINNY_INSTANCES(DUALGEMM_SM100A_SKINNY_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a_skinny
