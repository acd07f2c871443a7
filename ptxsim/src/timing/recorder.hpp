// Makes pieces of work of a run: an observer that notes what each warp does, issues and waits for.
// The order in which the interpreter happens to run warps has no influence, but for kernels that
// divide work by it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ptxsim/ptxsim.hpp"
#include "timing/work.hpp"

namespace ptxsim::timing {

// A demand of Server::kHbm: bytes read from a buffer, of which a part comes from memory.
struct BufferRead {
  uint32_t demand;
  uint64_t buffer;  // its address
};

struct RecordedCluster {
  uint32_t index = 0;  // linear in the grid of clusters
  Work work;
  std::vector<BufferRead> reads;
};

struct Recording {
  std::vector<RecordedCluster> clusters;
};

// Fills `recording` when clusters end.
MakeObserver make_recorder(std::shared_ptr<Recording> recording);

// Each byte of a buffer that the grid reads comes from memory once, and from L2 every other time:
// memory delivers the part of what `recording` read of a buffer that is left when the whole grid
// reads like the recorded clusters on average. Scales the demands of Server::kHbm.
void count_memory_once(Recording& recording, const GlobalMemory& memory, double clusters);

}  // namespace ptxsim::timing
