// From a list of instances to kernels and to what is known of them. For the file that compiles it.
#pragma once

#include "cuda/kernels/blackwell/entry.cuh"
#include "cuda/kernels/sm100a/dual_gemm.cuh"
#include "cuda/kernels/sm100a/instances.hpp"

#define DUALGEMM_SM100A_NAME(tile_n, stages, output_name) \
  dual_gemm_sm100a_t128x##tile_n##x256_s##stages##_##output_name
#define DUALGEMM_SM100A_ENTRY(tile_n, stages, output, output_name)                             \
  DUALGEMM_SM100A_KERNEL(DUALGEMM_SM100A_NAME(tile_n, stages, output_name), stages, dual_gemm, \
                         Config{tile_n, OutputType::output})
#define DUALGEMM_SM100A_ROW(tile_n, stages, output, output_name)                             \
  DUALGEMM_SM100A_INSTANCE(DUALGEMM_SM100A_NAME(tile_n, stages, output_name), SharedStorage, \
                           Config{tile_n, OutputType::output})
