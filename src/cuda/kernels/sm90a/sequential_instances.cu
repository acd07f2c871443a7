// The kernels of fused_sequential, one per Config.
#include "cuda/kernels/sm90a/entries.cuh"

namespace dualgemm::cuda::sm90a {

#define DUALGEMM_CONFIG(tile_m, n_warpgroups, type) \
  Config { tile_m, n_warpgroups, 1, type, false, false, true }
#define DUALGEMM_SEQUENTIAL(tile_m, n_warpgroups, type)                                  \
  DUALGEMM_SM90A_KERNEL(dual_gemm_sm90a_sequential_t##tile_m##_g##n_warpgroups##_##type, \
                        SequentialParams, DUALGEMM_CONFIG(tile_m, n_warpgroups, type))
#define DUALGEMM_ROW(tile_m, n_warpgroups, type)                           \
  instance_of<DUALGEMM_CONFIG(tile_m, n_warpgroups, type)>(                \
      "dual_gemm_sm90a_sequential_t" #tile_m "_g" #n_warpgroups "_" #type, \
      reinterpret_cast<const void*>(                                       \
          &dual_gemm_sm90a_sequential_t##tile_m##_g##n_warpgroups##_##type)),

DUALGEMM_SM90A_SEQUENTIAL_INSTANCES(DUALGEMM_SEQUENTIAL)

std::span<const Instance> sequential_instances() {
  static const Instance all[] = {DUALGEMM_SM90A_SEQUENTIAL_INSTANCES(DUALGEMM_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm90a
