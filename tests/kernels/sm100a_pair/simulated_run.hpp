// The kernel of a pair of CTAs in the interpreter, with the copies before it.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/kernels/sm100a_pair/launch.hpp"
#include "kernels/simulation/packed_weights.hpp"
#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

struct SimulatedRun {
  ptxsim::Options options{};
  int tile_n = 128;
  int64_t misalign = 0;         // Simulation's
  bool one_cta = false;         // run the other kernel, that of one CTA
  bool prepared = false;        // weights, packed in the interpreter by the kernel that does it
  int64_t persistent_ctas = 0;  // of the persistent kernel; 0: run the other one
  ptxsim::Stats stats{};        // of the last launch, filled in
  size_t launches = 0;          // filled in
  ptxsim::RunResult result{};   // of the last launch, filled in
  // When set: runs in place of the entry that has its name.
  std::shared_ptr<const ptxsim::Program> mutant{};
};

// Runs `data`'s problem with one instance and stores D in data.d, whose other bytes stay as they
// are. The grid before is taken to be still at work on everything that the kernel reads, and to be
// reading what it writes, until griddepcontrol.wait. Fails on an error of the interpreter and on
// any report of the sanitizer at severity error.
::testing::AssertionResult simulate(RandomCase& data, SimulatedRun& run);

// The decoded kernel that simulate() runs for this tile width and type of D.
std::shared_ptr<const ptxsim::Program> fused_program(int tile_n, DataType d_type, bool prepared,
                                                     bool persistent = false);

inline constexpr const char* kPackedName = PackedInSimulation::kName;
// Packs `data`'s weights into memory of that name; null: `result` says why not.
uint8_t* pack_weights(const RandomCase& data, Simulation& simulation,
                      ::testing::AssertionResult& result);

}  // namespace dualgemm::test
