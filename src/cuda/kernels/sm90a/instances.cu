// One kernel per Config, with an entry name that can be told from outside.
#include "cuda/kernels/sm90a/entries.cuh"

namespace dualgemm::cuda::sm90a {

DUALGEMM_SM90A_INSTANCES(DUALGEMM_SM90A_ENTRY)

std::span<const Instance> instances() {
  static const Instance all[] = {DUALGEMM_SM90A_INSTANCES(DUALGEMM_SM90A_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm90a
