// The threads of one call: the caller and helpers that the library keeps.
//
// A neighbour may take a core away from a helper at any moment and for milliseconds. So nothing
// here waits for a helper that has not begun: work is handed out as numbered units, the caller
// takes units like every helper and finishes alone if none comes. It waits only for units that a
// helper has taken, first spinning for a moment, then asleep, which leaves the caller's own
// core to that helper.
//
// Helpers are started when they are first wanted, spin for a moment after their last unit and then
// sleep. They are joined when the library is unloaded or the process ends; in a child after fork()
// there are none, and the first call there starts new ones. Any number of threads may have teams at
// the same time; each is sure of its own thread only. Which thread does what never matters to a
// result: units write disjoint outputs, and helpers compute with the caller's rounding and
// denormal modes.
#pragma once

#include <cstdint>

namespace dualgemm::core {

inline constexpr int kMaxTeam = 1024;

class Team {
 public:
  // The caller and up to threads - 1 helpers, fewer where the system gives no more threads.
  explicit Team(int threads) noexcept;
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const noexcept { return threads_; }

  // body(unit, seat) once for each unit of 0 .. units - 1, in any order and by any thread of the
  // team; returns when all are done, and what they wrote is visible to the caller and to later
  // units. At any moment at most one thread has a seat; seats are 0 .. threads() - 1.
  template <class Body>
  void run(int64_t units, const Body& body) noexcept {
    run_units(
        units,
        [](const void* function, int64_t unit, int seat) {
          (*static_cast<const Body*>(function))(unit, seat);
        },
        &body);
  }

 private:
  using Call = void (*)(const void* function, int64_t unit, int seat);
  void run_units(int64_t units, Call call, const void* function) noexcept;

  int slot_ = -1;  // of the pool; -1: the caller is alone
  int threads_ = 1;
};

}  // namespace dualgemm::core
