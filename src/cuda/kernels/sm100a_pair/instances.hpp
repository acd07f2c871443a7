// The compiled Configs of the kernel of a pair of CTAs. The same list feeds the choice of a plan
// and the tests.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/blackwell/instance.hpp"
#include "cuda/kernels/sm100a_pair/config.hpp"

// X(tile_n, stages, output type's constant, output type's name): tile_n and output are the Config,
// the rest are what the entry's name needs as text.
#define DUALGEMM_SM100A_PAIR_INSTANCES(X) \
  X(64, 7, kF16, f16)                     \
  X(64, 7, kBF16, bf16)                   \
  X(64, 7, kF32, f32)                     \
  X(64, 7, kE2M1, e2m1)                   \
  X(128, 5, kF16, f16)                    \
  X(128, 5, kBF16, bf16)                  \
  X(128, 5, kF32, f32)                    \
  X(128, 5, kE2M1, e2m1)

// The same for prepared weights.
#define DUALGEMM_SM100A_PAIR_PREPARED_OUTPUTS(X, tile_n, stages) \
  X(tile_n, stages, kF16, f16)                                   \
  X(tile_n, stages, kBF16, bf16)                                 \
  X(tile_n, stages, kF32, f32)                                   \
  X(tile_n, stages, kE2M1, e2m1)
#define DUALGEMM_SM100A_PAIR_PREPARED_INSTANCES(X) \
  DUALGEMM_SM100A_PAIR_PREPARED_OUTPUTS(X, 48, 8)  \
  DUALGEMM_SM100A_PAIR_PREPARED_OUTPUTS(X, 64, 8)  \
  DUALGEMM_SM100A_PAIR_PREPARED_OUTPUTS(X, 80, 7)  \
  DUALGEMM_SM100A_PAIR_PREPARED_OUTPUTS(X, 96, 6)  \
  DUALGEMM_SM100A_PAIR_PREPARED_OUTPUTS(X, 112, 6) \
  DUALGEMM_SM100A_PAIR_PREPARED_OUTPUTS(X, 128, 5)

// The same of persistent pairs, for unpacked weights and for prepared ones.
#define DUALGEMM_SM100A_PAIR_PERSISTENT_INSTANCES(X) \
  X(128, 5, kF16, f16)                               \
  X(128, 5, kBF16, bf16)                             \
  X(128, 5, kF32, f32)                               \
  X(128, 5, kE2M1, e2m1)

namespace dualgemm::cuda::sm100a_pair {

using Instance = blackwell::InstanceOf<Config>;

std::span<const Instance> instances();
std::span<const Instance> prepared_instances();
std::span<const Instance> persistent_instances();

}  // namespace dualgemm::cuda::sm100a_pair
