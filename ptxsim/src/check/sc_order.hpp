// What the order of fence.sc operations may bring (PTX ISA 9.0, "Memory Consistency Model":
// "Fence-SC", "Causality order", "Axioms"). Two fence.sc whose scopes reach each other are ordered:
// one comes first in the Fence-SC order, and synchronises with the other. Which one is decided
// where a strong access after the one has been observed by a strong access before the other (it
// reads what the first wrote, or overwrites it, or overwrites what the first has read): the other
// way around, an access would precede in causality order what it comes after in communication
// order.
//
// So each clock has, beside what happened before, what the fence.sc that came before it knew
// (`fenced`), and what those knew that came before accesses whose effects were observed
// (`observed`), which the next fence.sc acquires.
#pragma once

#include <array>
#include <vector>

#include "check/clock.hpp"
#include "machine/warp.hpp"
#include "ptxsim/machine/observer.hpp"

namespace ptxsim {

// By the reach that the fences have at least: their CTA, its cluster, the grid.
using ScClocks = std::array<SharedClock, 3>;

// Clocks in it have none of these themselves.
struct ScOrder {
  ScClocks fenced, observed;
};
using SharedScOrder = std::shared_ptr<const ScOrder>;

bool covers_sc(const SharedScOrder& order, const SharedScOrder& part);
void join_sc(SharedScOrder& order, const SharedScOrder& other);
ScOrder& writable_sc(ClockValues& clock);
// As it reaches another CTA of the cluster.
SharedClock across_ctas(const SharedClock& clock);

namespace check {

// What the lanes of a warp know of themselves; it is added to the clocks that they hand on.
struct OwnScOrder {
  struct
      Sent {  // the last clocks that a lane's strong accesses have left, and what they were made of
    SharedClock from;
    std::array<uint32_t, 3> epochs{};
    ScClocks clocks;
  };
  std::array<std::array<uint32_t, kWarpSize>, 3> fenced{};  // epoch of the last fence.sc, by reach
  std::array<ScClocks, kWarpSize> observed;
  std::array<Sent, kWarpSize> sent;
  // The address that a lane has read last, and how often that had been written: a poll learns
  // nothing new.
  std::array<uint64_t, kWarpSize> address_read{}, writes_read{};
};

// An address that strong accesses use: the fence.sc before those accesses.
struct ScFlag {
  struct By {
    uint32_t cluster, rank;
    Scope scope;
    ScClocks fenced;
  };
  std::vector<By> until_write;  // by writes, and by reads before the last of them
  std::vector<By> read_since;
  uint64_t writes = 0;
};

}  // namespace check
}  // namespace ptxsim
