// A problem for a kernel of which one instance has tiles of so many columns.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/simulation/simulation.hpp"
#include "support/bound.hpp"
#include "support/factors.hpp"

namespace dualgemm::test {

struct TileCase {
  Problem problem;
  Values values = Values::kRandom;
  int tile_n = 128;
  int64_t misalign = 0;
  bool per_batch = false;  // alphas for each batch, and row scales
};

// By the simulate() of a kernel's tests: every element within the bound of docs/numerics.md.
template <class Run>
void expect_right_in_tiles(const TileCase& c) {
  const Problem& p = c.problem;
  SCOPED_TRACE(::testing::Message()
               << "m " << p.m << " n " << p.n << " k " << p.k << " l " << p.l << ", d "
               << name_of(p.d.type) << ", " << name_of(p.act.kind) << ", bias " << name_of(p.bias)
               << ", tile_n " << c.tile_n << ", misalign " << c.misalign);
  Rng rng;
  RandomCase data(p, rng, c.values);
  if (c.per_batch) add_alphas_and_row_scales(data, rng);
  Run run{.tile_n = c.tile_n, .misalign = c.misalign};
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
}

}  // namespace dualgemm::test
