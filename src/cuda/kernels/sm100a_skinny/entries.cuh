// From a list of instances to kernels and to what is known of them. For the files that compile the
// lists.
#pragma once

#include "cuda/kernels/blackwell/entry.cuh"
#include "cuda/kernels/sm100a_skinny/dual_gemm.cuh"
#include "cuda/kernels/sm100a_skinny/grouped.cuh"
#include "cuda/kernels/sm100a_skinny/instances.hpp"

#define DUALGEMM_SM100A_SKINNY_NAME(name, tile_m, tile_n, stages) \
  name##_t##tile_m##x##tile_n##x256_s##stages
#define DUALGEMM_SM100A_SKINNY_ENTRY(name, grouped, prepared, tile_m, tile_n, stages)       \
  DUALGEMM_SM100A_KERNEL(DUALGEMM_SM100A_SKINNY_NAME(name, tile_m, tile_n, stages), stages, \
                         dual_gemm, Config{tile_m, tile_n, grouped, prepared})
#define DUALGEMM_SM100A_SKINNY_ROW(name, grouped, prepared, tile_m, tile_n, stages)              \
  DUALGEMM_SM100A_INSTANCE(DUALGEMM_SM100A_SKINNY_NAME(name, tile_m, tile_n, stages), StorageOf, \
                           Config{tile_m, tile_n, grouped, prepared})
