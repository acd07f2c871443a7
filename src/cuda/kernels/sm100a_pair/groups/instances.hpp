// The compiled kernels, one for each type of D. The same list feeds the choice of a plan and the
// tests.
#pragma once

#include <span>

#include "cuda/kernels/sm100a_pair/instances.hpp"

// X(stages, output type's constant, output type's name)
#define DUALGEMM_SM100A_PAIR_GROUPS_INSTANCES(X) \
  X(5, kF16, f16)                                \
  X(5, kBF16, bf16)                              \
  X(5, kF32, f32)                                \
  X(5, kE2M1, e2m1)

namespace dualgemm::cuda::sm100a_pair_groups {

using sm100a_pair::Instance;

std::span<const Instance> instances();

}  // namespace dualgemm::cuda::sm100a_pair_groups
