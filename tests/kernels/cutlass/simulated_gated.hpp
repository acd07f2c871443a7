// CUTLASS's kernels with an epilogue for two products, in the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "cuda/cutlass/launch.hpp"
#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

inline constexpr uint64_t kSeeds = 10;  // of the random and of the lazy schedule

struct GatedRun {
  const cuda::gated::Instance& instance;
  ptxsim::Options options{};
  int64_t misalign = 0;   // Simulation's
  bool prepared = false;  // the weights are interleaved apart, experts not one behind the other
  size_t copies = 0;      // launches before the kernel, filled in
};

// Runs `data`'s problem and stores D in data.d, whose other bytes stay as they are. Fails on an
// error of the interpreter, on any report of the sanitizer at severity error, and on any below it
// that is not one of CUTLASS's known ones.
::testing::AssertionResult simulate(RandomCase& data, GatedRun& run);

}  // namespace dualgemm::test
