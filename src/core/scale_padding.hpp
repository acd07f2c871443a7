// The padding of an NVFP4 output's swizzled scales.
#pragma once

#include "core/problem.hpp"

namespace dualgemm::core {

// Writes 0 to every padding byte of D's swizzled 128x4 tiles (rows beyond a group's tile-padded
// rows, columns beyond n/16), because consumers on GPUs expect it. Rows of a masked expert that do
// not exist are not padding and stay as they are. Nothing to do for other types and layouts.
void clear_scale_padding(const ResolvedProblem& problem, const Buffers& buffers) noexcept;

}  // namespace dualgemm::core
