// Groups of experts on pairs of CTAs in the interpreter, with the copies and the table before, and
// with what prepares weights.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/kernels/sm100a_pair/groups/launch.hpp"
#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

struct PairGroupsRun {
  ptxsim::Options options{};
  int64_t max_ctas = 4;
  int64_t misalign = 0;        // Simulation's
  bool prepared = false;       // weights
  ptxsim::Stats stats{};       // of the last launch, filled in
  size_t launches = 0;         // filled in
  ptxsim::RunResult result{};  // of the last launch, filled in
  // When set: runs in place of the entry that has its name.
  std::shared_ptr<const ptxsim::Program> mutant{};
};

// Runs `data`'s problem and stores D in data.d, whose other bytes stay as they are. The grid before
// is taken to be still at work on everything that the kernel reads, and to be reading what it
// writes, until griddepcontrol.wait. Fails on an error of the interpreter and on any report of the
// sanitizer at severity error.
::testing::AssertionResult simulate(RandomCase& data, PairGroupsRun& run);

// The same by the kernel for few rows, in tiles of 128 rows.
::testing::AssertionResult simulate_few_rows(RandomCase& data, bool prepared);

}  // namespace dualgemm::test
