// The compiled Configs of the sm_80 kernel. The same list feeds the choice of a plan and the tests.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/sm80/config.hpp"

// X(pass, its name, type of A, its name, tile_m, warps_n)
#define DUALGEMM_SM80_PASS(X, pass, pass_name) \
  X(pass, pass_name, kE2M1, e2m1, 8, 1)        \
  X(pass, pass_name, kE2M1, e2m1, 64, 2)       \
  X(pass, pass_name, kF16, f16, 8, 1)          \
  X(pass, pass_name, kF16, f16, 64, 2)         \
  X(pass, pass_name, kBF16, bf16, 8, 1)        \
  X(pass, pass_name, kBF16, bf16, 64, 2)
// Few rows of A in tiles of 16 columns, for a D of NVFP4: else twice as many CTAs share the work.
#define DUALGEMM_SM80_WIDE(X)              \
  X(kFused, fused_wide, kE2M1, e2m1, 8, 2) \
  X(kFused, fused_wide, kF16, f16, 8, 2)   \
  X(kFused, fused_wide, kBF16, bf16, 8, 2)
#define DUALGEMM_SM80_INSTANCES(X)               \
  DUALGEMM_SM80_PASS(X, kFused, fused)           \
  DUALGEMM_SM80_WIDE(X)                          \
  DUALGEMM_SM80_PASS(X, kSequential, sequential) \
  DUALGEMM_SM80_PASS(X, kGate, gate)             \
  DUALGEMM_SM80_PASS(X, kUp, up)                 \
  DUALGEMM_SM80_PASS(X, kGroups, groups)

namespace dualgemm::cuda::sm80 {

struct Instance {
  Config config;
  const char* entry;   // name of the kernel's entry point
  const void* kernel;  // its host handle
};

std::span<const Instance> instances();

}  // namespace dualgemm::cuda::sm80
