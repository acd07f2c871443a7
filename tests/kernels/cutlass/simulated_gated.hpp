// CUTLASS's kernels with an epilogue for two products, in the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "cuda/cutlass/launch.hpp"
#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

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

// One cluster does all tiles, or four at a time.
void expect_same_gated_bits_in_schedules(RandomCase& data, const cuda::gated::Instance& instance);

}  // namespace dualgemm::test
