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
    uint64_t number = 0;  // of the write that `reach` last grew with, counted over the grid
    // As other clusters are told of it, made when the first of them asks: who tells it on hands on
    // the same object, and to compare clocks that many clusters have told each other is quick.
    SharedClock told{};
  };
  std::vector<By> list;
  uint32_t cluster = 0, rank = 0;  // of the last strong write, and
  Scope scope = Scope::kNone;      // its own
};

// What a thread has taken over of the releases at an address: a loop that waits there reads again
// and again what it knows.
struct TakenOver {
  const Releases* from = nullptr;
  Scope scope = Scope::kNone;
  bool acquires = false;
  uint64_t number = 0;  // of the last write that it has seen
};

}  // namespace ptxsim::check
