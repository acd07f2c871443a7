// One kernel per Config, with an entry name that can be told from outside.
#include "cuda/kernels/sm80/instances.hpp"

#include "cuda/kernels/sm80/dual_gemm.cuh"

namespace dualgemm::cuda::sm80 {

#define DUALGEMM_SM80_CONFIG(a_type, tile_m, warps_n, pass) \
  Config { AType::a_type, tile_m, warps_n, Pass::pass }
#define DUALGEMM_SM80_ENTRY(pass, pass_name, a_type, a_name, tile_m, warps_n)                    \
  extern "C" __global__ void __launch_bounds__(                                                  \
      threads_of(DUALGEMM_SM80_CONFIG(a_type, tile_m, warps_n, pass)),                           \
      min_ctas_of(DUALGEMM_SM80_CONFIG(a_type, tile_m, warps_n, pass)))                          \
      dual_gemm_sm80_##pass_name##_##a_name##_t##tile_m(const __grid_constant__ Params params) { \
    dual_gemm<DUALGEMM_SM80_CONFIG(a_type, tile_m, warps_n, pass)>(params);                      \
  }
DUALGEMM_SM80_INSTANCES(DUALGEMM_SM80_ENTRY)
#undef DUALGEMM_SM80_ENTRY

std::span<const Instance> instances() {
#define DUALGEMM_SM80_ROW(pass, pass_name, a_type, a_name, tile_m, warps_n) \
  Instance{DUALGEMM_SM80_CONFIG(a_type, tile_m, warps_n, pass),             \
           "dual_gemm_sm80_" #pass_name "_" #a_name "_t" #tile_m,           \
           reinterpret_cast<const void*>(&dual_gemm_sm80_##pass_name##_##a_name##_t##tile_m)},
  static const Instance all[] = {DUALGEMM_SM80_INSTANCES(DUALGEMM_SM80_ROW)};
#undef DUALGEMM_SM80_ROW
  return all;
}

}  // namespace dualgemm::cuda::sm80
