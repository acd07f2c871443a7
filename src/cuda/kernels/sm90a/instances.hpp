// The compiled Configs of the sm_90a kernel. The same list feeds the choice of a plan, the tests
// and the benchmark.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/sm90a/config.hpp"

// X(entry's first part, prepared, tile_m, n_warpgroups, k_warpgroups, bf16 or f16)
#define DUALGEMM_SM90A_SHAPES(X, name, prepared, type) \
  X(name, prepared, 8, 1, 4, type)                     \
  X(name, prepared, 16, 1, 4, type)                    \
  X(name, prepared, 32, 1, 3, type)                    \
  X(name, prepared, 32, 2, 2, type)                    \
  X(name, prepared, 64, 2, 2, type)                    \
  X(name, prepared, 64, 4, 1, type)                    \
  X(name, prepared, 128, 2, 1, type)                   \
  X(name, prepared, 256, 2, 1, type)
#define DUALGEMM_SM90A_TYPES(X, name, prepared) \
  DUALGEMM_SM90A_SHAPES(X, name, prepared, f16) \
  DUALGEMM_SM90A_SHAPES(X, name, prepared, bf16)
#define DUALGEMM_SM90A_INSTANCES(X)               \
  DUALGEMM_SM90A_TYPES(X, dual_gemm_sm90a, false) \
  DUALGEMM_SM90A_TYPES(X, dual_gemm_sm90a_prepared, true)

namespace dualgemm::cuda::sm90a {

struct Instance {
  Config config;
  int weight_stages, act_stages;
  int act_subs;  // sub-tiles of a per stage
  uint32_t threads, dynamic_smem_bytes;
  const char* entry;   // name of the kernel's entry point
  const void* kernel;  // its host handle
};

std::span<const Instance> instances();

}  // namespace dualgemm::cuda::sm90a
