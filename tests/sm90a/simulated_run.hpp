// The sm_90a kernel in the interpreter: the host code that an H200 would run builds the launches,
// with the interpreter's encoder of tensor maps in the driver's place, and ptxsim runs the PTX.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "cuda/kernels/sm90a/launch.hpp"
#include "ptxsim/ptxsim.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {

struct SimulatedRun {
  ptxsim::Options options{};
  // An instance: rows and columns of d per tile, phases. 0 tokens: what a GPU of max_ctas SMs gets.
  int tokens = 0, cols = 64, phases = 1;
  int max_ctas = 4;
  // Bytes between a multiple of 256 and the operands in device memory (a in 16 bits and d:
  // elements), so that nothing leans on the allocator's alignment.
  int64_t misalign = 0;
  ptxsim::Stats stats{};      // of the last launch, filled in
  size_t launches = 0;        // filled in
  bool shares_tiles = false;  // filled in: whether CTAs shared a tile
};

// Runs `data`'s problem with one instance and stores d in data.d, whose other bytes stay as they
// are. Fails on an error of the interpreter and on any report of the sanitizer at severity error.
::testing::AssertionResult simulate(RandomCase& data, SimulatedRun& run);

// "<schedule> seed <n>", for messages.
std::string describe(const ptxsim::Options& options);

}  // namespace dualgemm::test
