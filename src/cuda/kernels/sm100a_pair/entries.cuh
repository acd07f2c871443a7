// From a list of instances to kernels and to what is known of them. For the files that compile such
// a list, one each.
#pragma once

#include "cuda/kernels/sm100a_pair/dual_gemm.cuh"
#include "cuda/kernels/sm100a_pair/instances.hpp"

namespace dualgemm::cuda::sm100a_pair {
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

// `prepared` and `persistent` of the Config, `name` of the kernel up to its tile.
#define DUALGEMM_SM100A_PAIR_KERNEL(prepared, persistent, name, tile_n, stages, output,    \
                                    output_name)                                           \
  static_assert(                                                                           \
      Budget<Config{tile_n, OutputType::output, prepared, persistent}>::kStages == stages, \
      "the name says how many stages there are");                                          \
  extern "C" __global__ void __launch_bounds__(                                            \
      Budget<Config{tile_n, OutputType::output, prepared, persistent}>::kThreads, 1)       \
      name##_t256x##tile_n##x256_s##stages##_##output_name(                                \
          const __grid_constant__ Params params) {                                         \
    dual_gemm_or_trap<Config{tile_n, OutputType::output, prepared, persistent}>(params);   \
  }
#define DUALGEMM_SM100A_PAIR_INSTANCE(prepared, persistent, name, tile_n, stages, output, \
                                      output_name)                                        \
  Instance{Config{tile_n, OutputType::output, prepared, persistent},                      \
           stages,                                                                        \
           Budget<Config{tile_n, OutputType::output, prepared, persistent}>::kThreads,    \
           kDynamicSmemBytes<Config{tile_n, OutputType::output, prepared, persistent}>,   \
           #name "_t256x" #tile_n "x256_s" #stages "_" #output_name,                      \
           reinterpret_cast<const void*>(&name##_t256x##tile_n##x256_s##stages##_##output_name)},

}  // namespace dualgemm::cuda::sm100a_pair
