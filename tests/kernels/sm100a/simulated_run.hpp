// The sm_100a kernel in the interpreter, with the copies before it.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/kernels/sm100a/launch.hpp"
#include "kernels/simulation/simulation.hpp"
#include "ptxsim/tensor_map.hpp"

namespace dualgemm::test {

struct SimulatedRun {
  ptxsim::Options options{};
  int tile_n = 128;
  int64_t misalign = 0;        // Simulation's
  ptxsim::Stats stats{};       // of the last launch, filled in
  size_t launches = 0;         // filled in
  ptxsim::RunResult result{};  // of the last launch, filled in
  // When set: runs in place of the entry that has its name.
  std::shared_ptr<const ptxsim::Program> mutant{};
};

// Runs `data`'s problem with one instance and stores D in data.d, whose other bytes stay as they
// are. Fails on an error of the interpreter and on any report of the sanitizer at severity error.
::testing::AssertionResult simulate(RandomCase& data, SimulatedRun& run);

// The decoded kernel that simulate() runs for this tile width and type of D.
std::shared_ptr<const ptxsim::Program> fused_program(int tile_n, DataType d_type);

}  // namespace dualgemm::test
