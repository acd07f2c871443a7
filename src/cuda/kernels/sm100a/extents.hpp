// Sizes that follow from a problem, shared by the choice of an instance and the launch.
#pragma once

#include <cstdint>

#include "core/int_math.hpp"
#include "core/problem.hpp"
#include "cuda/kernels/sm100a/config.hpp"

namespace dualgemm::cuda::sm100a {

using core::ceil_div;
using core::round_up;

inline int64_t num_ctas(const Problem& p, int64_t tile_n) {
  return ceil_div(p.m, kTileM) * ceil_div(p.n, tile_n) * p.l;
}

}  // namespace dualgemm::cuda::sm100a
