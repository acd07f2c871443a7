// The kernels of fused_sequential, one per Config.
#include "cuda/kernels/sm90a/entries.cuh"

namespace dualgemm::cuda::sm90a {

#define DUALGEMM_CONFIG(tile_m, n_warpgroups, type) \
  Config { tile_m, n_warpgroups, 1, type, false, false, true }
#define DUALGEMM_ENTRY(tile_m, n_warpgroups, type)                          \
  extern "C" __global__ void __launch_bounds__(                             \
      Budget<DUALGEMM_CONFIG(tile_m, n_warpgroups, type)>::kThreads, 1)     \
      dual_gemm_sm90a_sequential_t##tile_m##_g##n_warpgroups##_##type(      \
          const __grid_constant__ SequentialParams params) {                \
    dual_gemm_or_trap<DUALGEMM_CONFIG(tile_m, n_warpgroups, type)>(params); \
  }
#define DUALGEMM_ROW(tile_m, n_warpgroups, type)                           \
  instance_of<DUALGEMM_CONFIG(tile_m, n_warpgroups, type)>(                \
      "dual_gemm_sm90a_sequential_t" #tile_m "_g" #n_warpgroups "_" #type, \
      reinterpret_cast<const void*>(                                       \
          &dual_gemm_sm90a_sequential_t##tile_m##_g##n_warpgroups##_##type)),

DUALGEMM_SM90A_SEQUENTIAL_INSTANCES(DUALGEMM_ENTRY)

std::span<const Instance> sequential_instances() {
  static const Instance all[] = {DUALGEMM_SM90A_SEQUENTIAL_INSTANCES(DUALGEMM_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm90a
