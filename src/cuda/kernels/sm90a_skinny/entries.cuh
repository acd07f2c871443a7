// From a list of instances to kernels and to what is known of them. For the files that compile such
// a list, one each.
#pragma once

#include "cuda/kernels/sm90a_skinny/dual_gemm.cuh"
#include "cuda/kernels/sm90a_skinny/instances.hpp"

namespace dualgemm::cuda::sm90a_skinny {
namespace {

// Runs in images for Hopper; any other traps, and the host refuses before it comes to that.
template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm_or_trap([[maybe_unused]] const Params& params) {
#if DUALGEMM_TARGET_SM90
  dual_gemm<kCfg>(params);
#else
  __trap();
#endif
}

}  // namespace

#define DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type, units) \
  Config { AType::type, units, prepared, tile_m, grouped, many }
#define DUALGEMM_SM90A_SKINNY_ENTRY(entry, prepared, tile_m, grouped, many, type, name, units,     \
                                    cols)                                                          \
  static_assert(tile_n_of(DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type,      \
                                                       units)) == cols,                            \
                "the name says how many columns there are");                                       \
  extern "C" __global__ void __launch_bounds__(                                                    \
      Budget<DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type,                   \
                                          units)>::kThreads,                                       \
      1) entry##_##name##_n##cols(const __grid_constant__ Params params) {                         \
    dual_gemm_or_trap<DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type, units)>( \
        params);                                                                                   \
  }
#define DUALGEMM_SM90A_SKINNY_ROW(entry, prepared, tile_m, grouped, many, type, name, units, cols) \
  Instance{                                                                                        \
      DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type, units),                  \
      Budget<DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type, units)>::kStages, \
      Budget<DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type,                   \
                                          units)>::kThreads,                                       \
      kDynamicSmemBytes<DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type,        \
                                                     units)>,                                      \
      #entry "_" #name "_n" #cols,                                                                 \
      reinterpret_cast<const void*>(&entry##_##name##_n##cols)},

}  // namespace dualgemm::cuda::sm90a_skinny
