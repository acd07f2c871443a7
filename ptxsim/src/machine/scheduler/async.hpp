// Asynchronous operations in flight. Each completes at a moment that the schedule chooses;
// operations of one channel complete in the order in which they were submitted.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ptxsim/machine/launch.hpp"
#include "ptxsim/machine/observer.hpp"

namespace ptxsim {

using Random = std::mt19937_64;

class AsyncEngine {
 public:
  using Complete = std::function<void()>;

  // Unordered: completes independently of all others. With Schedule::kEager it runs before submit()
  // returns, once the operations before it in its channel have.
  void submit(Complete complete);
  // Ordered among those of the same `channel` (a number from new_channel()).
  void submit(uint64_t channel, Complete complete);
  uint64_t new_channel() { return ++last_channel_; }

  bool empty() const { return ready_.empty(); }
  size_t in_flight() const { return in_flight_; }
  void complete_one(Random& random);  // one of those that may complete now; not empty()
  bool eager = false;
  uint32_t statement = 0;  // which is executing: operations remember the one that issued them
  AsyncOp op;              // that it has issued, when somebody watches
  const Observers* observers = nullptr;

 private:
  struct Pending {
    uint64_t channel;  // 0: unordered
    uint32_t statement;
    AsyncOp op;
    Complete complete;
  };
  void run(Pending& pending);
  std::vector<Pending> ready_;  // heads of channels, and unordered ones
  std::vector<std::pair<uint64_t, std::deque<Pending>>> behind_;  // what waits behind a head
  uint64_t running_ = 0;  // the channel whose operation is completing
  uint64_t last_channel_ = 0;
  size_t in_flight_ = 0;
};

}  // namespace ptxsim
