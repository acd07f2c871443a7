// One kernel per type of D, with an entry name that can be told from outside.
#include "cuda/kernels/sm100a_pair/groups/instances.hpp"

#include "cuda/kernels/blackwell/entry.cuh"
#include "cuda/kernels/sm100a_pair/groups/dual_gemm.cuh"

#define DUALGEMM_SM100A_PAIR_GROUPS_NAME(stages, output_name) \
  dual_gemm_sm100a_pair_groups_t256x128x256_s##stages##_##output_name
#define DUALGEMM_SM100A_PAIR_GROUPS_ENTRY(stages, output, output_name)                             \
  DUALGEMM_SM100A_KERNEL(DUALGEMM_SM100A_PAIR_GROUPS_NAME(stages, output_name), stages, dual_gemm, \
                         config_of(OutputType::output))
#define DUALGEMM_SM100A_PAIR_GROUPS_ROW(stages, output, output_name)              \
  DUALGEMM_SM100A_INSTANCE(DUALGEMM_SM100A_PAIR_GROUPS_NAME(stages, output_name), \
                           sm100a_pair::SharedStorage, config_of(OutputType::output))

namespace dualgemm::cuda::sm100a_pair_groups {

DUALGEMM_SM100A_PAIR_GROUPS_INSTANCES(DUALGEMM_SM100A_PAIR_GROUPS_ENTRY)

std::span<const Instance> instances() {
  static const Instance all[] = {
      DUALGEMM_SM100A_PAIR_GROUPS_INSTANCES(DUALGEMM_SM100A_PAIR_GROUPS_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a_pair_groups
