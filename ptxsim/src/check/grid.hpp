// What the sanitizers of all clusters of a launch share: who touched which bytes of global memory,
// and what was released through it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/record.hpp"
#include "check/releases.hpp"
#include "check/sc_order.hpp"
#include "check/signals.hpp"
#include "machine/machine.hpp"

namespace ptxsim::check {

// An access to some bytes of a granule of global memory.
struct GlobalEntry {
  uint32_t cluster;
  uint32_t actor;  // warp of the cluster; asynchronous: index of the record
  uint32_t lanes;  // generic
  uint32_t epoch;  // generic
  uint32_t statement;
  uint16_t bytes;
  AccessKind kind;
  Scope scope;
  uint8_t element_bytes;
  bool is_async;
  bool non_coherent;
  bool stays;              // an atomic beside the next ones: nothing orders them
  bool changes_nothing;    // stored what was there (known where the kernel has ld.global.nc)
  bool is_spread = false;  // the bytes are shared out among the lanes, in their order
  uint32_t followed = 0xffffffffu;  // of a load: index in Grid::followed
  bool writes() const { return kind != AccessKind::kRead; }
};
inline constexpr uint32_t kGlobalGranule = 16;  // bytes
struct GlobalGranule {
  std::vector<GlobalEntry> entries;
  // What lets most reads pass without a look at all entries; it may say too much.
  struct Readers {
    uint32_t after = 0;  // the index of a cluster + 1; 0: none yet
    uint32_t warps = 0;  // that generic reads are of, a bit for each remainder of 32
  };
  std::array<Readers, 4> readers{};  // of the newest cluster of each remainder of 4
  bool has_writes = false;
  uint8_t hidden = 0;  // entries that there are not, as others are spread
  // From here on: reads by one statement of a warp that has none before; 0xff: there are none such.
  uint8_t run = 0xff;

  // As if each lane had entered the granule by itself: spread entries make way for one a lane.
  void divide() {
    if (hidden != 0) divide_spread();
  }

 private:
  void divide_spread();
};

// A registered buffer. Its shadow has a page where something was touched.
struct GlobalRegion {
  static constexpr uint64_t kPageGranules = 64;
  using Page = std::array<GlobalGranule, kPageGranules>;

  uint64_t address = 0, bytes = 0;
  std::string name;
  bool read_only = false;
  bool previous_writes = false, previous_reads = false;  // by a grid that this one overlaps
  std::vector<std::unique_ptr<Page>> pages;

  GlobalGranule& granule(uint64_t index);
};

// fence.proxy.tensormap::generic.acquire of the tensor map at an address.
struct TensorMapAcquire {
  uint32_t cluster, rank, warp, epoch;
  int lane;
  SharedClock known;         // at the fence
  uint32_t own_tensor_maps;  // of its lane
};

class Grid {
 public:
  explicit Grid(Machine& machine);  // throws Fault (kInput): a previous grid's buffer is unknown

  // The region that holds all of these bytes; nullptr: none.
  GlobalRegion* region_of(uint64_t address, uint64_t bytes);
  // "CTA (1,0,0) rank 1, warp 2, lane 5", also in clusters that are over.
  std::string actor(uint32_t cluster, uint32_t warp, int lane) const;
  std::string place(uint64_t address);  // "global memory 0x1000000010 (out + 0x10)"

  const Machine& machine() const { return machine_; }
  const EarlierGrids& earlier_grids() const { return earlier_grids_; }
  const std::vector<GlobalRegion>& regions() const { return regions_; }

  std::map<uint64_t, Releases> released;                             // by address
  uint64_t num_releasing_writes = 0;                                 // to any memory
  std::map<uint32_t, std::shared_ptr<std::vector<Record>>> records;  // by cluster
  std::map<uint64_t, std::vector<TensorMapAcquire>> acquired_maps;   // by address
  std::unordered_map<uint64_t, ScFlag> sc_flags;                     // by address
  std::unordered_map<uint64_t, std::vector<Signal>> signals;         // sent through it
  std::vector<FollowedLoad> followed;  // loads whose results may stay unused (unused_loads.cpp)
  std::optional<std::vector<bool>> may_stay_unused;  // by statement: which those are
  // As GridTrail has them.
  bool waits = false, lets_next_start = false, waits_before_next = false;

 private:
  Machine& machine_;
  Dim3 extents_, block_, cluster_;  // of the launch: the machine may be gone
  EarlierGrids earlier_grids_;
  std::vector<GlobalRegion> regions_;  // by address
  size_t last_ = 0;
};

}  // namespace ptxsim::check
