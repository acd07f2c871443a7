// EXPECT_TRUE(within_bound(problem, buffers, accumulation)): D against the oracle, every element
// inside the bound derived in docs/numerics.md.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "reference/bound.hpp"

namespace dualgemm::test {

inline ::testing::AssertionResult within_bound(const Problem& problem, const Buffers& buffers,
                                               reference::Accumulation accumulation) {
  int64_t failed = 0;
  reference::TileCheck worst;
  for (const auto& tile : reference::check_output(problem, buffers, accumulation, 64, 64)) {
    failed += tile.failed;
    if (tile.worst_share >= worst.worst_share) worst = tile;
  }
  if (failed == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << failed << " elements outside the bound; worst in batch " << worst.batch << " at ("
         << worst.worst_row << ", " << worst.worst_col << "): got " << worst.actual << ", exact "
         << worst.expected << ", accepted " << worst.lowest << " .. " << worst.highest;
}

// For what the kernels of `isa` compute.
inline ::testing::AssertionResult within_bound(const Problem& problem, const Buffers& buffers,
                                               Isa isa) {
  return within_bound(problem, buffers, reference::accumulation_of(problem, isa));
}

}  // namespace dualgemm::test
