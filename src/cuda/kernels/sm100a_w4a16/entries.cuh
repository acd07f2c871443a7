// From a list of instances to kernels and to what is known of them. For the files that compile the
// lists.
#pragma once

#include <type_traits>

#include "cuda/kernels/sm100a_w4a16/dual_gemm.cuh"
#include "cuda/kernels/sm100a_w4a16/grouped.cuh"
#include "cuda/kernels/sm100a_w4a16/instances.hpp"

namespace dualgemm::cuda::sm100a_w4a16 {
namespace {

// Runs in images that have tcgen05; any other traps, and the host refuses before it comes to that.
template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm_or_trap([[maybe_unused]] const Params& params) {
#if DUALGEMM_TARGET_SM100
  if constexpr (kCfg.grouped) {
    grouped_dual_gemm<kCfg>(params);
  } else {
    dual_gemm<kCfg>(params);
  }
#else
  __trap();
#endif
}

template <Config kCfg>
constexpr Instance instance_of(const char* entry, const void* kernel) {
  return {kCfg,
          Budget<kCfg>::kStages,
          Budget<kCfg>::kStageBytes,
          threads_of(kCfg),
          sm100a::dynamic_smem_bytes<
              std::conditional_t<kCfg.grouped, GroupedStorage<kCfg>, SharedStorage<kCfg>>>(),
          entry,
          kernel};
}

}  // namespace

#define DUALGEMM_SM100A_W4A16_CONFIG(bf16, grouped, tile_m) \
  Config { tile_m, bf16, grouped }
#define DUALGEMM_SM100A_W4A16_ENTRY(name, bf16, grouped, tile_m, stages)                        \
  static_assert(Budget<DUALGEMM_SM100A_W4A16_CONFIG(bf16, grouped, tile_m)>::kStages == stages, \
                "the name says how many stages there are");                                     \
  extern "C" __global__ void __launch_bounds__(                                                 \
      threads_of(DUALGEMM_SM100A_W4A16_CONFIG(bf16, grouped, tile_m)), 1)                       \
      dual_gemm_sm100a_w4a16_##name##_t##tile_m##x64x256_s##stages(                             \
          const __grid_constant__ Params params) {                                              \
    dual_gemm_or_trap<DUALGEMM_SM100A_W4A16_CONFIG(bf16, grouped, tile_m)>(params);             \
  }

#define DUALGEMM_SM100A_W4A16_ROW(name, bf16, grouped, tile_m, stages)  \
  instance_of<DUALGEMM_SM100A_W4A16_CONFIG(bf16, grouped, tile_m)>(     \
      "dual_gemm_sm100a_w4a16_" #name "_t" #tile_m "x64x256_s" #stages, \
      reinterpret_cast<const void*>(                                    \
          &dual_gemm_sm100a_w4a16_##name##_t##tile_m##x64x256_s##stages)),

}  // namespace dualgemm::cuda::sm100a_w4a16
