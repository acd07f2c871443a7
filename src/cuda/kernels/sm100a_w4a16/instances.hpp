// The compiled Configs. The same list feeds the choice of a plan and the tests.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/sm100a_w4a16/config.hpp"

// X(type, bf16, tile_m, stages): the Config, and what the entry's name needs besides.
#define DUALGEMM_SM100A_W4A16_INSTANCES(X) \
  X(f16, false, 16, 8)                     \
  X(f16, false, 32, 6)                     \
  X(f16, false, 64, 4)                     \
  X(bf16, true, 16, 8)                     \
  X(bf16, true, 32, 6)                     \
  X(bf16, true, 64, 4)

namespace dualgemm::cuda::sm100a_w4a16 {

struct Instance {
  Config config;
  int stages;
  int stage_bytes;
  uint32_t dynamic_smem_bytes;
  const char* entry;   // name of the kernel's entry point
  const void* kernel;  // its host handle
};

std::span<const Instance> instances();

}  // namespace dualgemm::cuda::sm100a_w4a16
