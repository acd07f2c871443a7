// The kernels for groups of experts, one per Config.
#include "cuda/kernels/sm100a_w4a16/entries.cuh"

namespace dualgemm::cuda::sm100a_w4a16 {

DUALGEMM_SM100A_W4A16_GROUP_INSTANCES(DUALGEMM_SM100A_W4A16_ENTRY)

std::span<const Instance> group_instances() {
  static const Instance all[] = {DUALGEMM_SM100A_W4A16_GROUP_INSTANCES(DUALGEMM_SM100A_W4A16_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a_w4a16
