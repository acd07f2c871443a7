// Vector clocks, shared until changed. An index is a thread of the cluster, an mbarrier, or a queue of asynchronous
// operations; a value is how far that one is known to have come.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace ptxsim {

struct ClockValues {
  std::vector<uint32_t> order;  // what happened before
  std::vector<uint32_t> async;  // the part of it that the async proxy sees too (after fence.proxy.async)
};

// Carried by barriers: what their arrivals released. Empty when the sanitizer is off.
struct SyncClock {
  std::shared_ptr<const ClockValues> values;
  void clear() { values.reset(); }
};

}  // namespace ptxsim
