// The kernels for groups of experts, one per Config.
#include "cuda/kernels/sm100a_skinny/entries.cuh"

namespace dualgemm::cuda::sm100a_skinny {

DUALGEMM_SM100A_SKINNY_GROUP_INSTANCES(DUALGEMM_SM100A_SKINNY_ENTRY)

std::span<const Instance> group_instances() {
  static const Instance all[] = {
      DUALGEMM_SM100A_SKINNY_GROUP_INSTANCES(DUALGEMM_SM100A_SKINNY_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a_skinny
