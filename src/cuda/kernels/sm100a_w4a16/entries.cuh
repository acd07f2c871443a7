// From a list of instances to kernels and to what is known of them. For the file that compiles the
// list.
#pragma once

#include "cuda/kernels/sm100a_w4a16/dual_gemm.cuh"
#include "cuda/kernels/sm100a_w4a16/instances.hpp"

namespace dualgemm::cuda::sm100a_w4a16 {
namespace {

// Runs in images that have tcgen05; any other traps, and the host refuses before it comes to that.
template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm_or_trap([[maybe_unused]] const Params& params) {
#if DUALGEMM_TARGET_SM100
  dual_gemm<kCfg>(params);
#else
  __trap();
#endif
}

}  // namespace

#define DUALGEMM_SM100A_W4A16_ENTRY(type, bf16, tile_m, stages)     \
  static_assert(Budget<Config{tile_m, bf16}>::kStages == stages,    \
                "the name says how many stages there are");         \
  extern "C" __global__ void __launch_bounds__(kThreads, 1)         \
      dual_gemm_sm100a_w4a16_##type##_t##tile_m##x64x256_s##stages( \
          const __grid_constant__ Params params) {                  \
    dual_gemm_or_trap<Config{tile_m, bf16}>(params);                \
  }

#define DUALGEMM_SM100A_W4A16_ROW(type, bf16, tile_m, stages)                \
  Instance{Config{tile_m, bf16},                                             \
           stages,                                                           \
           Budget<Config{tile_m, bf16}>::kStageBytes,                        \
           kDynamicSmemBytes<Config{tile_m, bf16}>,                          \
           "dual_gemm_sm100a_w4a16_" #type "_t" #tile_m "x64x256_s" #stages, \
           reinterpret_cast<const void*>(                                    \
               &dual_gemm_sm100a_w4a16_##type##_t##tile_m##x64x256_s##stages)},

}  // namespace dualgemm::cuda::sm100a_w4a16
