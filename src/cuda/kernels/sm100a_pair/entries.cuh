// From a list of instances to kernels and to what is known of them. For the files that compile such
// a list, one each.
#pragma once

#include "cuda/kernels/blackwell/entry.cuh"
#include "cuda/kernels/sm100a_pair/dual_gemm.cuh"
#include "cuda/kernels/sm100a_pair/instances.hpp"

// `prepared` and `persistent` of the Config, `name` of the kernel up to its tile.
#define DUALGEMM_SM100A_PAIR_NAME(name, tile_n, stages, output_name) \
  name##_t256x##tile_n##x256_s##stages##_##output_name
#define DUALGEMM_SM100A_PAIR_KERNEL(prepared, persistent, name, tile_n, stages, output,        \
                                    output_name)                                               \
  DUALGEMM_SM100A_KERNEL(DUALGEMM_SM100A_PAIR_NAME(name, tile_n, stages, output_name), stages, \
                         dual_gemm, Config{tile_n, OutputType::output, prepared, persistent})
#define DUALGEMM_SM100A_PAIR_INSTANCE(prepared, persistent, name, tile_n, stages, output, \
                                      output_name)                                        \
  DUALGEMM_SM100A_INSTANCE(DUALGEMM_SM100A_PAIR_NAME(name, tile_n, stages, output_name),  \
                           SharedStorage,                                                 \
                           Config{tile_n, OutputType::output, prepared, persistent})
