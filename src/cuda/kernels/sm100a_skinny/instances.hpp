// The compiled Configs. The same list feeds the choice of a plan and the tests.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/blackwell/instance.hpp"
#include "cuda/kernels/sm100a_skinny/config.hpp"

// X(entry's first part, grouped, prepared, tile_m, tile_n, stages): the Config, and what the
// entry's name needs besides. The first of the narrow tiles has 16 rows: behind the weights of one
// of 8 the MMA would read what lies outside its stage, and an MMA with N = 8 is no faster than one
// with 16.
#define DUALGEMM_SM100A_SKINNY_INSTANCES(X)            \
  X(dual_gemm_sm100a_skinny, false, false, 8, 64, 9)   \
  X(dual_gemm_sm100a_skinny, false, false, 16, 64, 9)  \
  X(dual_gemm_sm100a_skinny, false, false, 32, 64, 8)  \
  X(dual_gemm_sm100a_skinny, false, false, 64, 64, 7)  \
  X(dual_gemm_sm100a_skinny, false, false, 128, 64, 5) \
  X(dual_gemm_sm100a_skinny, false, false, 16, 32, 14) \
  X(dual_gemm_sm100a_skinny, false, false, 32, 32, 12) \
  X(dual_gemm_sm100a_skinny, false, false, 64, 32, 10) \
  X(dual_gemm_sm100a_skinny, false, false, 128, 32, 7)
// With prepared weights a stage has no scales of neighbouring columns; a pair's tiles take more
// rows.
#define DUALGEMM_SM100A_SKINNY_PREPARED_INSTANCES(X)          \
  X(dual_gemm_sm100a_skinny_prepared, false, true, 32, 64, 9) \
  X(dual_gemm_sm100a_skinny_prepared, false, true, 32, 32, 14)
// Experts are many: their tiles fill a GPU without being narrow. One of 8 rows would have no more
// stages than one of 16.
#define DUALGEMM_SM100A_SKINNY_GROUP_INSTANCES(X)           \
  X(dual_gemm_sm100a_skinny_groups, true, false, 16, 64, 8) \
  X(dual_gemm_sm100a_skinny_groups, true, false, 32, 64, 7) \
  X(dual_gemm_sm100a_skinny_groups, true, false, 64, 64, 6) \
  X(dual_gemm_sm100a_skinny_groups, true, false, 128, 64, 5)

namespace dualgemm::cuda::sm100a_skinny {

using Instance = blackwell::InstanceOf<Config>;

std::span<const Instance> instances();           // without groups
std::span<const Instance> prepared_instances();  // the same for prepared weights
std::span<const Instance> group_instances();     // for groups, of both

}  // namespace dualgemm::cuda::sm100a_skinny
