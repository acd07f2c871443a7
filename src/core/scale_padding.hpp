// The padding of swizzled scales that are written.
#pragma once

#include <algorithm>

#include "core/problem.hpp"

namespace dualgemm::core {

// Writes 0 to the padding of D's swizzled 128x4 tiles, because consumers on GPUs expect it: beside
// every row that is computed, columns beyond n/16, and below the last one rows up to a multiple of
// 128 (of contiguous experts each, else below row m). Scales of rows assigned to no expert stay as
// they are, and so do all scales of an expert without rows: a GPU has no tile there that could
// write them. Nothing to do for other types and layouts.
void clear_scale_padding(const ResolvedProblem& problem, const Buffers& buffers) noexcept;

// The same of `rows` rows of scales from row `begin`, a multiple of 128, on; swizzled.
void clear_tile_padding(const ScaleMap& map, uint8_t* scales, int64_t begin, int64_t rows) noexcept;

// Rows of swizzled scales that suffice however `rows` rows fall to `experts` contiguous ones: the
// most tiles come from one row in as many experts as possible and the rest in one. At least those
// of one matrix of `rows` rows, which row_experts make of A and D.
constexpr int64_t most_padded_rows(int64_t rows, int64_t experts) noexcept {
  const int64_t busy = std::min(rows, experts);
  return (busy + (rows - busy) / 128) * 128;
}

}  // namespace dualgemm::core
