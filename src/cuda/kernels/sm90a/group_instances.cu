// The kernels for groups of experts, one per Config.
#include "cuda/kernels/sm90a/entries.cuh"

namespace dualgemm::cuda::sm90a {

DUALGEMM_SM90A_GROUP_INSTANCES(DUALGEMM_SM90A_ENTRY)

std::span<const Instance> group_instances() {
  static const Instance all[] = {DUALGEMM_SM90A_GROUP_INSTANCES(DUALGEMM_SM90A_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm90a
