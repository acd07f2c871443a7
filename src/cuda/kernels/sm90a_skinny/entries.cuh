// From a list of instances to kernels and to what is known of them. For the files that compile such
// a list, one each.
#pragma once

#include "cuda/kernels/common/entry.cuh"
#include "cuda/kernels/sm90a_skinny/dual_gemm.cuh"
#include "cuda/kernels/sm90a_skinny/instances.hpp"

#define DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type, units) \
  Config { AType::type, units, prepared, tile_m, grouped, many }
#define DUALGEMM_SM90A_SKINNY_ENTRY(entry, prepared, tile_m, grouped, many, type, name, units, \
                                    cols)                                                      \
  static_assert(tile_n_of(DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type,  \
                                                       units)) == cols,                        \
                "the name says how many columns there are");                                   \
  DUALGEMM_ENTRY(DUALGEMM_TARGET_SM90, entry##_##name##_n##cols, Params,                       \
                 (Budget<DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type,   \
                                                      units)>::kThreads),                      \
                 dual_gemm,                                                                    \
                 DUALGEMM_SM90A_SKINNY_CONFIG(prepared, tile_m, grouped, many, type, units))
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
