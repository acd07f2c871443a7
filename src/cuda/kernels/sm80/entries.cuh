// One kernel per Config, with an entry name that can be told from outside.
#pragma once

#include "cuda/kernels/sm80/dual_gemm.cuh"
#include "cuda/kernels/sm80/instances.hpp"

#define DUALGEMM_SM80_CONFIG(pass, prepared, tile) \
  Config { prepared, DUALGEMM_SM80_TILE_##tile, Pass::pass }
#define DUALGEMM_SM80_NAME(pass_name, prepared_name, tile) \
  dual_gemm_sm80_##pass_name##_##prepared_name##_##tile
#define DUALGEMM_SM80_ENTRY(pass, pass_name, prepared, prepared_name, tile)                       \
  static_assert(smem_bytes_of(DUALGEMM_SM80_CONFIG(pass, prepared, tile)) <= kMaxSmemBytes);      \
  extern "C" __global__ void __launch_bounds__(                                                   \
      threads_of(DUALGEMM_SM80_CONFIG(pass, prepared, tile)),                                     \
      min_ctas_of(DUALGEMM_SM80_CONFIG(pass, prepared, tile)))                                    \
      DUALGEMM_SM80_NAME(pass_name, prepared_name, tile)(const __grid_constant__ Params params) { \
    dual_gemm<DUALGEMM_SM80_CONFIG(pass, prepared, tile)>(params);                                \
  }
#define DUALGEMM_SM80_TEXT(name) DUALGEMM_SM80_TEXT_OF(name)
#define DUALGEMM_SM80_TEXT_OF(name) #name
#define DUALGEMM_SM80_ROW(pass, pass_name, prepared, prepared_name, tile)          \
  Instance{DUALGEMM_SM80_CONFIG(pass, prepared, tile),                             \
           DUALGEMM_SM80_TEXT(DUALGEMM_SM80_NAME(pass_name, prepared_name, tile)), \
           reinterpret_cast<const void*>(&DUALGEMM_SM80_NAME(pass_name, prepared_name, tile))},
