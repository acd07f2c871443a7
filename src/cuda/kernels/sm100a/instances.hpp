// The compiled Configs of the sm_100a kernel. The same list feeds the choice of a plan, the tests
// and the benchmark.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "cuda/kernels/blackwell/instance.hpp"
#include "cuda/kernels/sm100a/config.hpp"

// X(tile_n, stages, output type's constant, output type's name): tile_n and output are the Config,
// the rest are what the entry's name needs as text.
#define DUALGEMM_SM100A_INSTANCES(X) \
  X(64, 5, kF16, f16)                \
  X(64, 5, kBF16, bf16)              \
  X(64, 5, kF32, f32)                \
  X(64, 5, kE2M1, e2m1)              \
  X(128, 4, kF16, f16)               \
  X(128, 4, kBF16, bf16)             \
  X(128, 4, kF32, f32)               \
  X(128, 4, kE2M1, e2m1)

namespace dualgemm::cuda::sm100a {

using Instance = blackwell::InstanceOf<Config>;

std::span<const Instance> instances();

}  // namespace dualgemm::cuda::sm100a
