// One kernel per type of D, with an entry name that can be told from outside.
#include "cuda/kernels/sm100a_pair_groups/dual_gemm.cuh"
#include "cuda/kernels/sm100a_pair_groups/instances.hpp"

namespace dualgemm::cuda::sm100a_pair_groups {
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

#define DUALGEMM_SM100A_PAIR_GROUPS_ENTRY(stages, output, output_name)                             \
  static_assert(Budget<config_of(OutputType::output)>::kStages == stages,                          \
                "the name says how many stages there are");                                        \
  extern "C" __global__ void __launch_bounds__(Budget<config_of(OutputType::output)>::kThreads, 1) \
      dual_gemm_sm100a_pair_groups_t256x128x256_s##stages##_##output_name(                         \
          const __grid_constant__ Params params) {                                                 \
    dual_gemm_or_trap<config_of(OutputType::output)>(params);                                      \
  }
#define DUALGEMM_SM100A_PAIR_GROUPS_ROW(stages, output, output_name)               \
  Instance{config_of(OutputType::output),                                          \
           stages,                                                                 \
           Budget<config_of(OutputType::output)>::kThreads,                        \
           sm100a_pair::kDynamicSmemBytes<config_of(OutputType::output)>,          \
           "dual_gemm_sm100a_pair_groups_t256x128x256_s" #stages "_" #output_name, \
           reinterpret_cast<const void*>(                                          \
               &dual_gemm_sm100a_pair_groups_t256x128x256_s##stages##_##output_name)},

DUALGEMM_SM100A_PAIR_GROUPS_INSTANCES(DUALGEMM_SM100A_PAIR_GROUPS_ENTRY)

std::span<const Instance> instances() {
  static const Instance all[] = {
      DUALGEMM_SM100A_PAIR_GROUPS_INSTANCES(DUALGEMM_SM100A_PAIR_GROUPS_ROW)};
  return all;
}

}  // namespace dualgemm::cuda::sm100a_pair_groups
