// The compiled Configs of the sm_90a kernel. The same list feeds the choice of a plan, the tests
// and the benchmark.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/sm90a/config.hpp"

// X(entry's first part, prepared, grouped, tile_m, n_warpgroups, k_warpgroups, bf16 or f16)
#define DUALGEMM_SM90A_SHAPES(X, name, prepared, type) \
  X(name, prepared, false, 8, 1, 4, type)              \
  X(name, prepared, false, 16, 1, 4, type)             \
  X(name, prepared, false, 32, 1, 3, type)             \
  X(name, prepared, false, 32, 2, 2, type)             \
  X(name, prepared, false, 64, 2, 2, type)             \
  X(name, prepared, false, 64, 4, 1, type)             \
  X(name, prepared, false, 128, 2, 1, type)            \
  X(name, prepared, false, 128, 3, 1, type)            \
  X(name, prepared, false, 256, 2, 1, type)
// tile_m ascends. Experts are many: columns of D need not be shared out more finely.
#define DUALGEMM_SM90A_GROUP_SHAPES(X, name, prepared, type) \
  X(name, prepared, true, 16, 1, 4, type)                    \
  X(name, prepared, true, 32, 2, 2, type)                    \
  X(name, prepared, true, 64, 4, 1, type)                    \
  X(name, prepared, true, 128, 2, 1, type)                   \
  X(name, prepared, true, 128, 3, 1, type)                   \
  X(name, prepared, true, 256, 2, 1, type)
// X(tile_m, n_warpgroups, bf16 or f16). A thread has the sums of two products.
#define DUALGEMM_SM90A_SEQUENTIAL_INSTANCES(X) \
  X(64, 2, f16) X(64, 2, bf16) X(128, 2, f16) X(128, 2, bf16)
#define DUALGEMM_SM90A_LIST(X, shapes, name)                                                     \
  shapes(X, name, false, f16) shapes(X, name, false, bf16) shapes(X, name##_prepared, true, f16) \
      shapes(X, name##_prepared, true, bf16)
#define DUALGEMM_SM90A_INSTANCES(X) DUALGEMM_SM90A_LIST(X, DUALGEMM_SM90A_SHAPES, dual_gemm_sm90a)
#define DUALGEMM_SM90A_GROUP_INSTANCES(X) \
  DUALGEMM_SM90A_LIST(X, DUALGEMM_SM90A_GROUP_SHAPES, dual_gemm_sm90a_groups)

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
std::span<const Instance> group_instances();
std::span<const Instance> sequential_instances();

}  // namespace dualgemm::cuda::sm90a
