// The kernels for more tiles than CTAs, one per Config.
#include "cuda/kernels/sm90a_skinny/entries.cuh"

namespace dualgemm::cuda::sm90a_skinny {

DUALGEMM_SM90A_SKINNY_MANY_INSTANCES(DUALGEMM_SM90A_SKINNY_ENTRY)

std::span<const Instance> many_instances() {
  static const Instance all[] = {DUALGEMM_SM90A_SKINNY_MANY_INSTANCES(DUALGEMM_SM90A_SKINNY_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm90a_skinny
