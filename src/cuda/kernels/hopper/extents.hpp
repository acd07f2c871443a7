// Sizes that follow from a problem, whatever the kernel.
#pragma once

#include <cstdint>

#include "core/int_math.hpp"
#include "core/problem.hpp"
#include "cuda/kernels/hopper/stage.hpp"

namespace dualgemm::cuda::hopper {

using core::ceil_div;
using core::round_up;

inline int64_t k_tiles_of(const Problem& p) { return ceil_div(p.k, kTileK); }
// Contiguous groups share one.
inline int64_t batches_of_a(const Problem& p) {
  return p.grouping == Grouping::kContiguous ? 1 : p.l;
}

}  // namespace dualgemm::cuda::hopper
