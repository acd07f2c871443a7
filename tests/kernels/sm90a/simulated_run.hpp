// The sm_90a kernels in the interpreter, with the copies before them.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/kernels/sm90a/launch.hpp"
#include "kernels/simulation/simulation.hpp"
#include "ptxsim/tensor_map.hpp"

namespace dualgemm::test {

struct SimulatedRun {
  ptxsim::Options options{};
  // An instance: rows and columns of D per tile, k_warpgroups. 0 tile_m: what a GPU of max_ctas SMs
  // gets.
  int tile_m = 0, tile_n = 64, k_warpgroups = 1;
  int max_ctas = 4;
  bool prepared = false;                  // weights packed in a launch before
  int64_t misalign = 0;                   // Simulation's
  ptxsim::Stats stats{};                  // of the last launch, filled in
  std::vector<ptxsim::Report> reports{};  // of the same, warnings and advisories
  size_t launches = 0;                    // filled in
  bool shares_tiles = false;              // filled in: whether CTAs shared a tile, through memory
  bool pairs_ctas = false;                // filled in: or in clusters of two
};

// Runs `data`'s problem with one instance and stores D in data.d, whose other bytes stay as they
// are. Fails on an error of the interpreter and on any report of the sanitizer at severity error.
::testing::AssertionResult simulate(RandomCase& data, SimulatedRun& run);

}  // namespace dualgemm::test
