// From a list of instances to kernels and to what is known of them. For the files that compile such
// a list, one each.
#pragma once

#include "cuda/kernels/common/entry.cuh"
#include "cuda/kernels/sm90a/dual_gemm.cuh"
#include "cuda/kernels/sm90a/instances.hpp"

namespace dualgemm::cuda::sm90a {
namespace {

constexpr bool bf16 = true, f16 = false;  // as the list of instances spells them

}  // namespace

#define DUALGEMM_SM90A_CONFIG(prepared, grouped, tile_m, n_warpgroups, k_warpgroups, type) \
  Config { tile_m, n_warpgroups, k_warpgroups, type, prepared, grouped }
#define DUALGEMM_SM90A_ENTRY(name, prepared, grouped, tile_m, n_warpgroups, k_warpgroups, type) \
  DUALGEMM_SM90A_KERNEL(                                                                        \
      name##_t##tile_m##_g##n_warpgroups##_p##k_warpgroups##_##type, Params,                    \
      DUALGEMM_SM90A_CONFIG(prepared, grouped, tile_m, n_warpgroups, k_warpgroups, type))
#define DUALGEMM_SM90A_KERNEL(entry, parameters, ...)                                      \
  DUALGEMM_ENTRY(DUALGEMM_TARGET_SM90, entry, parameters, (Budget<__VA_ARGS__>::kThreads), \
                 dual_gemm, __VA_ARGS__)

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
