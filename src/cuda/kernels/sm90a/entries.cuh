// From a list of instances to kernels and to what is known of them. For the files that compile such
// a list, one each.
#pragma once

#include "cuda/kernels/sm90a/dual_gemm.cuh"
#include "cuda/kernels/sm90a/instances.hpp"

namespace dualgemm::cuda::sm90a {
namespace {

constexpr bool bf16 = true, f16 = false;  // as the list of instances spells them

// Runs in images that have wgmma; any other traps, and the host refuses before it comes to that.
template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm_or_trap([[maybe_unused]] const ParamsOf<kCfg>& params) {
#if DUALGEMM_TARGET_SM90
  dual_gemm<kCfg>(params);
#else
  __trap();
#endif
}

}  // namespace

#define DUALGEMM_SM90A_CONFIG(prepared, grouped, tile_m, n_warpgroups, k_warpgroups, type) \
  Config { tile_m, n_warpgroups, k_warpgroups, type, prepared, grouped }
#define DUALGEMM_SM90A_ENTRY(name, prepared, grouped, tile_m, n_warpgroups, k_warpgroups, type)    \
  extern "C" __global__ void __launch_bounds__(                                                    \
      Budget<DUALGEMM_SM90A_CONFIG(prepared, grouped, tile_m, n_warpgroups, k_warpgroups,          \
                                   type)>::kThreads,                                               \
      1)                                                                                           \
      name##_t##tile_m##_g##n_warpgroups##_p##k_warpgroups##_##type(                               \
          const __grid_constant__ Params params) {                                                 \
    dual_gemm_or_trap<DUALGEMM_SM90A_CONFIG(prepared, grouped, tile_m, n_warpgroups, k_warpgroups, \
                                            type)>(params);                                        \
  }

template <Config kCfg>
static Instance instance_of(const char* entry, const void* kernel) {
  using B = Budget<kCfg>;
  return {kCfg,        B::kWeightStages,        B::kActStages, B::kActSubs,
          B::kThreads, kDynamicSmemBytes<kCfg>, entry,         kernel};
}

#define DUALGEMM_SM90A_ROW(name, prepared, grouped, tile_m, n_warpgroups, k_warpgroups, type)      \
  instance_of<DUALGEMM_SM90A_CONFIG(prepared, grouped, tile_m, n_warpgroups, k_warpgroups, type)>( \
      #name "_t" #tile_m "_g" #n_warpgroups "_p" #k_warpgroups "_" #type,                          \
      reinterpret_cast<const void*>(                                                               \
          &name##_t##tile_m##_g##n_warpgroups##_p##k_warpgroups##_##type)),

}  // namespace dualgemm::cuda::sm90a
