// Scales that lie in rows, to the words of scale tiles.
#pragma once

#include <cstdint>

#include "cuda/kernels/blackwell/stage.hpp"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::blackwell {

// Scales of the MMA's row 32 * word + lane, of each step: what the lane writes.
using ScaleWords = uint32_t[kMmaSteps][kScaleTileCols];

// Row `row` of a stage's scales in rows.
DUALGEMM_DEVICE void take_row(const void* scales, uint32_t row, int word, ScaleWords& words) {
  const uint4 steps = static_cast<const uint4*>(scales)[row];
  words[0][word] = steps.x, words[1][word] = steps.y;
  words[2][word] = steps.z, words[3][word] = steps.w;
}

DUALGEMM_DEVICE void write_scales(const ScaleWords& words, uint32_t lane,
                                  uint32_t (&to)[kMmaSteps][32][kScaleTileCols]) {
#pragma unroll
  for (int step = 0; step < kMmaSteps; ++step) {
    *reinterpret_cast<uint4*>(to[step][lane]) =
        make_uint4(words[step][0], words[step][1], words[step][2], words[step][3]);
  }
}

}  // namespace dualgemm::cuda::blackwell
