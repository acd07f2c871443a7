// The compiled Configs. The same list feeds the choice of a plan and the tests.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/blackwell/instance.hpp"
#include "cuda/kernels/sm100a_w4a16/config.hpp"

// X(what the entry's name has besides the tile, bf16, grouped, tile_m, stages): the Config, and
// what the name needs.
#define DUALGEMM_SM100A_W4A16_INSTANCES(X) \
  X(f16, false, false, 16, 8)              \
  X(f16, false, false, 32, 6)              \
  X(f16, false, false, 64, 4)              \
  X(bf16, true, false, 16, 8)              \
  X(bf16, true, false, 32, 6)              \
  X(bf16, true, false, 64, 4)
// For groups an instance with 16 rows would save nothing that is waited for.
#define DUALGEMM_SM100A_W4A16_GROUP_INSTANCES(X) \
  X(f16_groups, false, true, 32, 6)              \
  X(f16_groups, false, true, 64, 4)              \
  X(bf16_groups, true, true, 32, 6)              \
  X(bf16_groups, true, true, 64, 4)

namespace dualgemm::cuda::sm100a_w4a16 {

using Instance = blackwell::InstanceOf<Config>;

std::span<const Instance> instances();        // without groups
std::span<const Instance> group_instances();  // for groups

}  // namespace dualgemm::cuda::sm100a_w4a16
