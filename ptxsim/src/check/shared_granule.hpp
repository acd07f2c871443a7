// Who has used 16 bytes of shared memory.
#pragma once

#include <cstdint>
#include <vector>

#include "ptxsim/machine/observer.hpp"

namespace ptxsim::check {

inline constexpr uint32_t kNobody = 0xffffffffu;

// An access to some bytes of a 16-byte granule of shared memory.
struct ShadowEntry {
  uint32_t actor;  // warp of the cluster; asynchronous: index of the record
  uint32_t lanes;  // generic
  uint32_t epoch;  // generic
  uint32_t statement;
  uint16_t bytes;
  AccessKind kind;
  bool is_async;
  bool is_agreed = false;  // a write beside which others write the same bytes in no order
  // An atomic that others of its bytes are in no order with: a reader must follow each.
  bool stays = false;
  bool is_spread = false;  // the bytes are shared out among the lanes, in their order
  uint32_t load = kNobody;
  uint32_t followed = kNobody;  // of a load: index in Grid::followed
};
// The shadow of shared memory is searched at every access: 36 bytes took a tenth more time.
static_assert(sizeof(ShadowEntry) == 32);
inline constexpr uint32_t kGranule = 16;

struct Granule {
  std::vector<ShadowEntry> entries;
  // What lets most accesses pass without a look at the entries: bytes that some of them write, and
  // the warps that generic ones are of (a bit for each remainder of 64). Both may say too much.
  uint64_t warps = 0;
  uint16_t written = 0;
  // From here on all entries are of one execution of a statement or more, by a warp that has no
  // entry before; kNobody: there are none such.
  uint32_t run = kNobody;
  uint32_t generation = 0;  // CtaShadow::generation when it was entered last
  bool has_spread = false;

  void note_write(const ShadowEntry& entry) {
    written |= entry.bytes;
    run = kNobody;
    if (!entry.is_async) warps |= 1ull << (entry.actor & 63);
  }
  void clear() { entries.clear(), warps = 0, written = 0, run = kNobody, has_spread = false; }
};

}  // namespace ptxsim::check
