// From a list of instances to kernels and to what is known of them. For the files that compile the
// lists.
#pragma once

#include "cuda/kernels/blackwell/entry.cuh"
#include "cuda/kernels/sm100a_w4a16/dual_gemm.cuh"
#include "cuda/kernels/sm100a_w4a16/grouped.cuh"
#include "cuda/kernels/sm100a_w4a16/instances.hpp"

#define DUALGEMM_SM100A_W4A16_NAME(name, tile_m, stages) \
  dual_gemm_sm100a_w4a16_##name##_t##tile_m##x64x256_s##stages
#define DUALGEMM_SM100A_W4A16_ENTRY(name, bf16, grouped, tile_m, stages)                      \
  DUALGEMM_SM100A_KERNEL(DUALGEMM_SM100A_W4A16_NAME(name, tile_m, stages), stages, dual_gemm, \
                         Config{tile_m, bf16, grouped})
#define DUALGEMM_SM100A_W4A16_ROW(name, bf16, grouped, tile_m, stages)                  \
  DUALGEMM_SM100A_INSTANCE(DUALGEMM_SM100A_W4A16_NAME(name, tile_m, stages), StorageOf, \
                           Config{tile_m, bf16, grouped})
