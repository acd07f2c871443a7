// A whole benchmark shape of the challenge: all CTAs, all tiles of k. Minutes, so such tests run
// only when asked for: scripts/simulate_full_shape.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>

#include "kernels/simulation/simulation.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {

// By the simulate() of a kernel's tests.
template <class Run>
void expect_whole_shape_right(const Problem& p, Run run, reference::Accumulation accumulation) {
  Rng rng;
  RandomCase data(p, rng, Values::kChallenge);
  // Products of a deviation of about 2: activations bend, fp16 does not overflow.
  data.alpha_gate = data.alpha_up = 1.0f / 16;
  const std::clock_t begin = std::clock();
  ASSERT_TRUE(simulate(data, run));
  std::printf("%.2f s of one core in the interpreter\n",
              static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  EXPECT_TRUE(within_bound(p, data.buffers(), accumulation));
  std::printf(
      "%llu warp-instructions, %llu MMAs, %.3f GB loaded by TMA, %llu of %llu waits blocked\n",
      static_cast<unsigned long long>(run.stats.warp_instructions),
      static_cast<unsigned long long>(run.stats.mma_instructions),
      static_cast<double>(run.stats.tma_load_bytes) * 1e-9,
      static_cast<unsigned long long>(run.stats.barrier_waits_blocked),
      static_cast<unsigned long long>(run.stats.barrier_waits));
}

}  // namespace dualgemm::test
