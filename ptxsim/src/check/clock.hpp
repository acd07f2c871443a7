// Vector clocks, shared until changed. An index is a thread of the cluster, an mbarrier, or a queue
// of asynchronous operations; a value is how far that one is known to have come.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace ptxsim {

struct ForeignClock;
struct ScOrder;
struct Signal;

struct ClockValues {
  std::vector<uint32_t> order;  // what happened before
  std::vector<uint32_t>
      async;  // the part of it that the async proxy sees too (after fence.proxy.async)
  // What is over, whether its effects can be seen or not: order, and what came through .relaxed
  // barriers. Empty: the same as `order`.
  std::vector<uint32_t> execution;
  uint32_t started = 0;  // CTAs of the cluster, by rank, that are known to run
  // As `async`, for accesses to global memory: what bulk copies see of it (fence.proxy.async and
  // its .global form), and what readers of tensor maps see
  // (fence.proxy.tensormap::generic.release).
  std::vector<uint32_t> async_global{}, tensor_maps{};
  // What is known of other clusters of the grid, ascending by cluster (foreign_clock.hpp).
  std::shared_ptr<const std::vector<ForeignClock>> foreign{};
  bool after_previous_grid = false;  // somebody before has executed griddepcontrol.wait
  // The part of `order` that came by edges whose scopes reach this far: not through an mbarrier
  // with the scope .cta from another CTA. Empty: the same as `order`.
  std::vector<uint32_t> visible{};
  std::shared_ptr<const ScOrder> sc{};                   // what fence.sc may order (sc_order.hpp)
  std::shared_ptr<const std::vector<Signal>> signals{};  // that were received (signals.hpp)
};
using SharedClock = std::shared_ptr<const ClockValues>;

// The clock of another cluster, counted as that one counts; it has no foreign clocks itself.
struct ForeignClock {
  uint32_t cluster = 0;
  SharedClock clock;
};

// Carried by barriers: what their arrivals released. Empty when the sanitizer is off.
struct SyncClock {
  SharedClock values;
  SharedClock
      last;  // joined into `values` last: lanes of a warp that arrive one by one have the same
  void clear() { values.reset(), last.reset(); }
};

// An index past the end has the value 0.
inline uint32_t clock_value(const std::vector<uint32_t>& clock, uint32_t index) {
  return index < clock.size() ? clock[index] : 0;
}
inline const std::vector<uint32_t>& execution_of(const ClockValues& clock) {
  return clock.execution.empty() ? clock.order : clock.execution;
}
inline const std::vector<uint32_t>& visible_of(const ClockValues& clock) {
  return clock.visible.empty() ? clock.order : clock.visible;
}
void raise(std::vector<uint32_t>& clock, uint32_t index, uint32_t value);
void raise_order(ClockValues& clock, uint32_t index,
                 uint32_t value);  // with `execution` and `visible`
// The same for the lanes of a warp, whose first has the index `first`; values: by lane.
void raise(std::vector<uint32_t>& clock, uint32_t first, uint32_t lanes, const uint32_t* values);
void raise_order(ClockValues& clock, uint32_t first, uint32_t lanes, uint32_t value);

void join(std::vector<uint32_t>& clock, const std::vector<uint32_t>& other);
bool covers(const std::vector<uint32_t>& clock, const std::vector<uint32_t>& part);
bool covers(const ClockValues& clock, const ClockValues& part);  // in every component

// The clock itself when it has no other holder, a copy otherwise; made when there is none.
ClockValues& writable(SharedClock& clock);

void join_into(SharedClock& clock,
               const SharedClock& other);  // shares `other` when it covers the clock
// The same clock without what fence.sc may order and signals.
SharedClock alone(const SharedClock& clock);
void join_execution_into(SharedClock& clock,
                         const ClockValues& other);  // only what .relaxed carries

}  // namespace ptxsim
