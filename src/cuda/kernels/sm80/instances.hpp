// The compiled Configs of the sm_80 kernel. The same list feeds the choice of a plan and the tests.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/sm80/config.hpp"

// X(pass, its name, type of A, its name, prepared, its name, groups of 8 rows, warps_n, warps_k)
#define DUALGEMM_SM80_TYPES(X, pass, pass_name, prepared, prepared_name, groups, warps_n, warps_k) \
  X(pass, pass_name, kE2M1, e2m1, prepared, prepared_name, groups, warps_n, warps_k)               \
  X(pass, pass_name, kF16, f16, prepared, prepared_name, groups, warps_n, warps_k)                 \
  X(pass, pass_name, kBF16, bf16, prepared, prepared_name, groups, warps_n, warps_k)
// 8 warps divide k for few rows, 4 for more, 2 where 128 columns share 64 rows.
#define DUALGEMM_SM80_TILES(X, pass, pass_name, prepared, prepared_name)    \
  DUALGEMM_SM80_TYPES(X, pass, pass_name, prepared, prepared_name, 1, 1, 8) \
  DUALGEMM_SM80_TYPES(X, pass, pass_name, prepared, prepared_name, 2, 1, 8) \
  DUALGEMM_SM80_TYPES(X, pass, pass_name, prepared, prepared_name, 4, 1, 8) \
  DUALGEMM_SM80_TYPES(X, pass, pass_name, prepared, prepared_name, 4, 1, 4) \
  DUALGEMM_SM80_TYPES(X, pass, pass_name, prepared, prepared_name, 8, 4, 2)
#define DUALGEMM_SM80_FUSED(X) DUALGEMM_SM80_TILES(X, kFused, fused, false, unpacked)
#define DUALGEMM_SM80_PREPARED(X) DUALGEMM_SM80_TILES(X, kFused, fused, true, prepared)
#define DUALGEMM_SM80_PASSES(X)                                             \
  DUALGEMM_SM80_TYPES(X, kSequential, sequential, false, unpacked, 2, 1, 8) \
  DUALGEMM_SM80_TYPES(X, kSequential, sequential, false, unpacked, 4, 1, 4) \
  DUALGEMM_SM80_TYPES(X, kSequential, sequential, false, unpacked, 8, 4, 2) \
  DUALGEMM_SM80_TYPES(X, kGate, gate, false, unpacked, 2, 1, 8)             \
  DUALGEMM_SM80_TYPES(X, kGate, gate, false, unpacked, 4, 1, 4)             \
  DUALGEMM_SM80_TYPES(X, kGate, gate, false, unpacked, 8, 4, 2)             \
  DUALGEMM_SM80_TYPES(X, kUp, up, false, unpacked, 2, 1, 8)                 \
  DUALGEMM_SM80_TYPES(X, kUp, up, false, unpacked, 4, 1, 4)                 \
  DUALGEMM_SM80_TYPES(X, kUp, up, false, unpacked, 8, 4, 2)

namespace dualgemm::cuda::sm80 {

struct Instance {
  Config config;
  const char* entry;   // name of the kernel's entry point
  const void* kernel;  // its host handle
};

std::span<const Instance> unpacked_instances();
std::span<const Instance> prepared_instances();
inline std::span<const Instance> instances(bool prepared) {
  return prepared ? prepared_instances() : unpacked_instances();
}

}  // namespace dualgemm::cuda::sm80
