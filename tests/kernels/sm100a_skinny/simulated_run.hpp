// The sm_100a kernel for few rows in the interpreter, with the copies before it, and with what
// prepares weights.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/kernels/sm100a_skinny/launch.hpp"
#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {

struct SkinnyRun {
  ptxsim::Options options{};
  int tile_n = 64;
  int tile_m = 0;           // 0: the fewest rows that hold the problem's; of groups 16
  bool persistent = false;  // without groups: CTAs that take tiles in turn, as those of groups do
  int64_t max_ctas = 3;     // of groups, persistent
  int64_t misalign = 0;     // Simulation's
  bool prepared = false;    // weights
  ptxsim::Stats stats{};    // of the last launch, filled in
  size_t launches = 0;      // filled in
  ptxsim::RunResult result{};  // of the last launch, filled in
  // When set: runs in place of the entry that has its name.
  std::shared_ptr<const ptxsim::Program> mutant{};
};

// Runs `data`'s problem with one instance and stores D in data.d, whose other bytes stay as they
// are. Fails on an error of the interpreter and on any report of the sanitizer at severity error.
::testing::AssertionResult simulate(RandomCase& data, SkinnyRun& run);

// The instance that simulate() runs, which must exist.
const cuda::sm100a_skinny::Instance& instance_of(const Problem& problem, const SkinnyRun& run);

// As a test's message says it.
std::string describe(const Problem& problem, const SkinnyRun& run);

}  // namespace dualgemm::test
