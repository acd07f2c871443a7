#include "cuda/kernels/common/entry.cuh"
#include "cuda/kernels/sm120a/dual_gemm.cuh"
#include "cuda/kernels/sm120a/instances.hpp"

#define DUALGEMM_SM120A_NAME(groups, warps_m) dual_gemm_sm120a_g##groups##_m##warps_m
#define DUALGEMM_SM120A_ENTRY(groups, warps_m)                                       \
  extern "C" __global__ void __launch_bounds__(threads_of(Config{groups, warps_m}),  \
                                               min_ctas_of(Config{groups, warps_m})) \
      DUALGEMM_SM120A_NAME(groups, warps_m)(const __grid_constant__ Params params) { \
    run_or_trap<DUALGEMM_TARGET_SM120>(params, [](const auto& given) {               \
      dual_gemm<Config{groups, warps_m}>(given);                                     \
    });                                                                              \
  }
#define DUALGEMM_SM120A_TEXT(name) DUALGEMM_SM120A_TEXT_OF(name)
#define DUALGEMM_SM120A_TEXT_OF(name) #name
#define DUALGEMM_SM120A_ROW(groups, warps_m)                                                     \
  Instance{Config{groups, warps_m}, DUALGEMM_SM120A_TEXT(DUALGEMM_SM120A_NAME(groups, warps_m)), \
           reinterpret_cast<const void*>(&DUALGEMM_SM120A_NAME(groups, warps_m))},

namespace dualgemm::cuda::sm120a {

DUALGEMM_SM120A_INSTANCES(DUALGEMM_SM120A_ENTRY)

std::span<const Instance> instances() {
  static const Instance all[] = {DUALGEMM_SM120A_INSTANCES(DUALGEMM_SM120A_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm120a
