// Makes pieces of work of a run: an observer that notes what each warp does, issues and waits for.
// The order in which the interpreter happens to run warps has no influence, but for kernels that
// divide work by it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ptxsim/ptxsim.hpp"
#include "timing/statements.hpp"
#include "timing/work.hpp"

namespace ptxsim::timing {

// A demand of Server::kHbm: bytes of a buffer that are read, of which a part comes from memory, or
// written, of which a part goes there.
struct BufferUse {
  uint32_t demand;
  uint64_t buffer;  // its address
  bool is_write = false;
};

struct RecordedCluster {
  uint32_t index = 0;  // linear in the grid of clusters
  Work work;
  std::vector<BufferUse> uses;
  double written_factor = 1;                     // on what is written, for parts of sectors
  std::unordered_map<uint64_t, double> atomics;  // by line: atomics of one address
  bool has_roles = false, is_narrow = false;
  double slots = 0, unknown_slots = 0;  // of issue; of statements that are not modelled
};

struct Recording {
  std::vector<RecordedCluster> clusters;
};

// Fills `recording` when clusters end. `l1_bytes`: what a CTA has of L1. `costs`: of the program
// that runs.
MakeObserver make_recorder(std::shared_ptr<Recording> recording, uint64_t l1_bytes,
                           std::shared_ptr<const StatementCosts> costs);

// Each byte of a buffer that the grid reads comes from memory once, and from L2 every other time:
// memory delivers the part of what `recording` read of a buffer that is left when the whole grid
// reads like the recorded clusters on average; with what is written it is the same. Scales the
// demands of Server::kHbm. Returns the bytes of buffers that the grid uses.
double count_memory_once(Recording& recording, const GlobalMemory& memory, double clusters);

}  // namespace ptxsim::timing
