// The sm_100a kernel in the interpreter: the host code that a B200 would run builds the launches,
// with the interpreter's encoder of tensor maps in the driver's place, and ptxsim runs the PTX.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "cuda/kernels/sm100a/launch.hpp"
#include "ptxsim/ptxsim.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {

struct SimulatedRun {
  ptxsim::Options options{};
  int tile_n = 128;
  // Bytes between a multiple of 256 and the operands in device memory (d: elements), so that
  // nothing leans on the allocator's alignment.
  int64_t misalign = 0;
  ptxsim::Stats stats{};       // of the last launch, filled in
  size_t launches = 0;         // filled in
  ptxsim::RunResult result{};  // of the last launch, filled in
  // When set: runs in place of the entry that has its name.
  std::shared_ptr<const ptxsim::Program> mutant{};
};

// Runs `data`'s problem with one instance and stores d in data.d, whose other bytes stay as they
// are. Fails on an error of the interpreter and on any report of the sanitizer at severity error.
::testing::AssertionResult simulate(RandomCase& data, SimulatedRun& run);

// The decoded kernel that simulate() runs for this tile width and type of D.
std::shared_ptr<const ptxsim::Program> fused_program(int tile_n, DataType d_type);

// "<schedule> seed <n>", for messages.
std::string describe(const ptxsim::Options& options);

}  // namespace dualgemm::test
