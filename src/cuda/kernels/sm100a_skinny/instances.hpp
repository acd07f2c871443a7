// The compiled Configs. The same list feeds the choice of a plan and the tests.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/sm100a_skinny/config.hpp"

// X(tile_m, tile_n, stages): the Config, and what the entry's name needs besides. The first of the
// narrow tiles has 16 rows: behind the weights of one of 8 the MMA would read what lies outside its
// stage, and an MMA with N = 8 is no faster than one with 16.
#define DUALGEMM_SM100A_SKINNY_INSTANCES(X) \
  X(8, 64, 9)                               \
  X(16, 64, 9)                              \
  X(32, 64, 8)                              \
  X(64, 64, 7)                              \
  X(128, 64, 5)                             \
  X(16, 32, 14)                             \
  X(32, 32, 12)                             \
  X(64, 32, 10)                             \
  X(128, 32, 7)

namespace dualgemm::cuda::sm100a_skinny {

struct Instance {
  Config config;
  int stages;
  int stage_bytes;
  uint32_t dynamic_smem_bytes;
  const char* entry;   // name of the kernel's entry point
  const void* kernel;  // its host handle
};

std::span<const Instance> instances();

}  // namespace dualgemm::cuda::sm100a_skinny
