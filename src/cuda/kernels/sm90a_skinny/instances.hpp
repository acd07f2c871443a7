// The compiled Configs. The same list feeds the choice of a plan, the tests and the benchmark.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/sm90a_skinny/config.hpp"

// X(entry's first part, prepared, rows of A, type of A, its name, units, columns of D as text)
#define DUALGEMM_SM90A_SKINNY_WIDTHS(X, entry, prepared, tile_m, type, name) \
  X(entry, prepared, tile_m, type, name, 1, 8)                               \
  X(entry, prepared, tile_m, type, name, 2, 16)                              \
  X(entry, prepared, tile_m, type, name, 3, 24)                              \
  X(entry, prepared, tile_m, type, name, 4, 32)
#define DUALGEMM_SM90A_SKINNY_TYPES(X, entry, prepared, tile_m)         \
  DUALGEMM_SM90A_SKINNY_WIDTHS(X, entry, prepared, tile_m, kE2M1, e2m1) \
  DUALGEMM_SM90A_SKINNY_WIDTHS(X, entry, prepared, tile_m, kF16, f16)   \
  DUALGEMM_SM90A_SKINNY_WIDTHS(X, entry, prepared, tile_m, kBF16, bf16)
#define DUALGEMM_SM90A_SKINNY_INSTANCES(X)                                 \
  DUALGEMM_SM90A_SKINNY_TYPES(X, dual_gemm_sm90a_skinny, false, 8)         \
  DUALGEMM_SM90A_SKINNY_TYPES(X, dual_gemm_sm90a_skinny_prepared, true, 8) \
  DUALGEMM_SM90A_SKINNY_TYPES(X, dual_gemm_sm90a_skinny_prepared_m16, true, 16)

namespace dualgemm::cuda::sm90a_skinny {

struct Instance {
  Config config;
  int stages;  // of each warp
  uint32_t threads, dynamic_smem_bytes;
  const char* entry;   // name of the kernel's entry point
  const void* kernel;  // its host handle
};

std::span<const Instance> instances();

}  // namespace dualgemm::cuda::sm90a_skinny
