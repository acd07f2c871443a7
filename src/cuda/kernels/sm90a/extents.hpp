// Sizes that follow from a problem, shared by the choice of an instance and the launch.
#pragma once

#include <cstdint>

#include "cuda/kernels/hopper/extents.hpp"
#include "cuda/kernels/sm90a/config.hpp"

namespace dualgemm::cuda::sm90a {

using core::ceil_div;
using hopper::batches_of_a;
using hopper::k_tiles_of;

inline int64_t tiles_of(const Problem& p, const Config& config) {
  return ceil_div(p.m, config.tile_m) * ceil_div(p.n, tile_n_of(config)) * p.l;
}

// Whether the kernel finds rows of A by index itself: where they would otherwise be copied, once
// for each expert, at 16384 tokens of Qwen3-30B-A3B 1.07 GB instead of 0.13. Copies of 16 bytes
// hold up the loop by 6 to 10 %, so only where few columns share what a row's copy costs, and each
// row of A is there twice at least: 0.93 to 0.96 of the time with 768 columns and eight experts a
// row, 1.01 to 1.07 with 2880, 1.05 to 1.09 with 14336 (H200, prepared weights, 30 November 2026,
// docs/lab/h200_experts.md). Rows begin within 32 bits.
inline bool gathers(const Problem& p, const Config& config) {
  constexpr int64_t kMostCols = 1024, kMostRows = (int64_t{1} << 32) / kRowBytes;
  return can_gather(config) && p.a_rows != 0 && p.a_rows <= p.m / 2 && p.a_rows <= kMostRows &&
         p.n <= kMostCols;
}

// Rows of decoded A, of a batch.
inline int64_t prepared_rows(const Problem& p, const Config& config) {
  return gathers(p, config) ? p.a_rows : p.m;
}

}  // namespace dualgemm::cuda::sm90a
