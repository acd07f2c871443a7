// Tiles of one CTA: how many there are, and how many columns they should have.
#pragma once

#include <cstdint>

#include "core/int_math.hpp"
#include "cuda/kernels/blackwell/stage.hpp"

namespace dualgemm::cuda::blackwell {

using core::ceil_div;
using core::round_up;

constexpr int64_t num_ctas(int64_t m, int64_t n, int64_t l, int64_t tile_n) {
  return ceil_div(m, kCtaRows) * ceil_div(n, tile_n) * l;
}

// Columns of D per CTA on a GPU of `num_sms` SMs.
constexpr int choose_tile_n(int64_t m, int64_t n, int64_t l, int num_sms) {
  // A wave of narrow tiles takes a little more than half as long as one of wide tiles: the tensor
  // core then reads shared memory as fast as it can, at 64 instead of 128 columns an A.
  constexpr double kNarrowCost = 0.55;
  const auto waves = [&](int64_t tile_n) {
    return static_cast<double>(ceil_div(num_ctas(m, n, l, tile_n), num_sms > 0 ? num_sms : 1));
  };
  return n <= 64 || waves(64) * kNarrowCost < waves(128) ? 64 : 128;
}

}  // namespace dualgemm::cuda::blackwell
