// Clocks that release patterns hand on through memory, and how far.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "check/clock.hpp"
#include "ptxsim/machine/observer.hpp"

namespace ptxsim::check {

// By the scope that is needed: to a thread of the same CTA, of the same cluster, of any other.
using Reach = std::array<SyncClock, 3>;
inline size_t reach_of(Scope needed) { return static_cast<size_t>(needed) - 1; }

// At an address: what the last pattern released, and those that a chain of atomics has kept.
struct Releases {
  struct By {
    uint32_t cluster, rank;
    Reach reach;
  };
  std::vector<By> list;
  uint32_t cluster = 0, rank = 0;  // of the last strong write, and
  Scope scope = Scope::kNone;      // its own
};

}  // namespace ptxsim::check
