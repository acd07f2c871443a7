// The compiled Configs of the sm_80 kernel. The same list feeds the choice of a plan and the tests.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/sm80/config.hpp"

// A tile by its rows and its warps along k or n: groups of 8 rows, units, warps_n, warps_k. 8 warps
// divide k for few rows, 4 for more; of many rows 8 or 12 stand side by side.
#define DUALGEMM_SM80_TILE_r8_k8 1, 4, 1, 8
#define DUALGEMM_SM80_TILE_r16_k8 2, 4, 1, 8
#define DUALGEMM_SM80_TILE_r32_k8 4, 4, 1, 8
#define DUALGEMM_SM80_TILE_r32_k4 4, 4, 1, 4
#define DUALGEMM_SM80_TILE_r48_n12 6, 2, 12, 1
#define DUALGEMM_SM80_TILE_r64_n8 8, 2, 8, 1
#define DUALGEMM_SM80_TILE_r64_n12 8, 2, 12, 1
#define DUALGEMM_SM80_TILE_r96_n8 12, 2, 8, 1
#define DUALGEMM_SM80_TILE_r128_n8 16, 2, 8, 1
#define DUALGEMM_SM80_TILE_r64_n8_twice 8, 4, 8, 1  // two loops over k, of half of the units

// X(pass, the name of its kernel, prepared, its name, tile)
#define DUALGEMM_SM80_FEW_ROWS(X, prepared, prepared_name) \
  X(kFused, fused, prepared, prepared_name, r8_k8)         \
  X(kFused, fused, prepared, prepared_name, r16_k8)        \
  X(kFused, fused, prepared, prepared_name, r32_k8)        \
  X(kFused, fused, prepared, prepared_name, r32_k4)
#define DUALGEMM_SM80_FUSED(X)               \
  DUALGEMM_SM80_FEW_ROWS(X, false, unpacked) \
  X(kFused, fused, false, unpacked, r64_n8)  \
  X(kFused, fused, false, unpacked, r128_n8)
#define DUALGEMM_SM80_PREPARED(X)           \
  DUALGEMM_SM80_FEW_ROWS(X, true, prepared) \
  X(kFused, fused, true, prepared, r48_n12) \
  X(kFused, fused, true, prepared, r64_n12) \
  X(kFused, fused, true, prepared, r96_n8)  \
  X(kFused, fused, true, prepared, r128_n8)
#define DUALGEMM_SM80_PASS(X, pass, pass_name, wide) \
  X(pass, pass_name, false, unpacked, r16_k8)        \
  X(pass, pass_name, false, unpacked, r32_k4)        \
  X(pass, pass_name, false, unpacked, wide)
#define DUALGEMM_SM80_SEQUENTIAL(X) DUALGEMM_SM80_PASS(X, kSequential, sequential, r64_n8_twice)
// By kernels of kFused.
#define DUALGEMM_SM80_ONE_PRODUCT(X)           \
  DUALGEMM_SM80_PASS(X, kGate, fused, r128_n8) \
  DUALGEMM_SM80_PASS(X, kUp, fused, r128_n8)

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
