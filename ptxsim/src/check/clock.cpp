#include "check/clock.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "check/foreign_clock.hpp"
#include "check/sc_order.hpp"
#include "check/signals.hpp"
#include "ptxsim/ir/module.hpp"

namespace ptxsim {

void join(std::vector<uint32_t>& clock, const std::vector<uint32_t>& other) {
  if (clock.size() < other.size()) clock.resize(other.size(), 0);
  uint32_t* __restrict to = clock.data();
  const uint32_t* __restrict from = other.data();
  constexpr size_t kRun = 16;  // of a fixed length, as in covers()
  const size_t n = other.size();
  size_t i = 0;
  for (; i + kRun <= n; i += kRun)
    for (size_t k = 0; k < kRun; ++k) to[i + k] = std::max(to[i + k], from[i + k]);
  for (; i < n; ++i) to[i] = std::max(to[i], from[i]);
}

void raise(std::vector<uint32_t>& clock, uint32_t index, uint32_t value) {
  if (clock.size() <= index) clock.resize(index + 1, 0);
  clock[index] = std::max(clock[index], value);
}

void raise_order(ClockValues& clock, uint32_t index, uint32_t value) {
  raise(clock.order, index, value);
  if (!clock.execution.empty()) raise(clock.execution, index, value);
  if (!clock.visible.empty()) raise(clock.visible, index, value);
}

void raise(std::vector<uint32_t>& clock, uint32_t first, uint32_t lanes, const uint32_t* values) {
  const size_t end = first + static_cast<size_t>(std::bit_width(lanes));
  if (clock.size() < end) clock.resize(end, 0);
  uint32_t* const to = clock.data() + first;
  if (lanes == kAllLanes) {
    for (int lane = 0; lane < kWarpSize; ++lane) to[lane] = std::max(to[lane], values[lane]);
    return;
  }
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    to[lane] = std::max(to[lane], values[lane]);
  }
}

void raise_order(ClockValues& clock, uint32_t first, uint32_t lanes, uint32_t value) {
  std::array<uint32_t, kWarpSize> values;
  values.fill(value);
  raise(clock.order, first, lanes, values.data());
  if (!clock.execution.empty()) raise(clock.execution, first, lanes, values.data());
  if (!clock.visible.empty()) raise(clock.visible, first, lanes, values.data());
}

bool covers(const std::vector<uint32_t>& clock, const std::vector<uint32_t>& part) {
  const size_t shared = std::min(clock.size(), part.size());
  for (size_t i = shared; i < part.size(); ++i)
    if (part[i] != 0) return false;
  // Runs of a fixed length without an early exit inside: the compiler makes vectors of them.
  constexpr size_t kRun = 16;
  size_t i = 0;
  for (; i + kRun <= shared; i += kRun) {
    uint32_t missing = 0;
    for (size_t k = 0; k < kRun; ++k) missing |= uint32_t{clock[i + k] < part[i + k]};
    if (missing != 0) return false;
  }
  for (; i < shared; ++i)
    if (clock[i] < part[i]) return false;
  return true;
}

bool covers(const ClockValues& clock, const ClockValues& part) {
  if ((part.started & ~clock.started) != 0) return false;
  if (part.after_previous_grid && !clock.after_previous_grid) return false;
  if (!covers(clock.order, part.order) || !covers(clock.async, part.async)) return false;
  if (!covers(clock.async_global, part.async_global)) return false;
  if (!covers(clock.tensor_maps, part.tensor_maps)) return false;
  if (!covers_foreign(clock.foreign, part.foreign)) return false;
  if (!covers_sc(clock.sc, part.sc) || !covers_signals(clock.signals, part.signals)) return false;
  if ((!clock.visible.empty() || !part.visible.empty()) &&
      !covers(visible_of(clock), visible_of(part)))
    return false;
  if (clock.execution.empty() && part.execution.empty()) return true;
  return covers(execution_of(clock), execution_of(part));
}

ClockValues& writable(SharedClock& clock) {
  if (!clock) clock = std::make_shared<ClockValues>();
  if (clock.use_count() != 1) clock = std::make_shared<ClockValues>(*clock);
  // Every clock is made by make_shared<ClockValues>, so the object itself is not const.
  return const_cast<ClockValues&>(*clock);
}

void join_into(SharedClock& clock, const SharedClock& other) {
  if (!other || clock == other) return;
  if (!clock || covers(*other, *clock)) {
    clock = other;
    return;
  }
  if (covers(*clock, *other)) return;
  ClockValues& values = writable(clock);
  if (!values.execution.empty() || !other->execution.empty()) {
    if (values.execution.empty()) values.execution = values.order;
    join(values.execution, execution_of(*other));
  }
  if (!values.visible.empty() || !other->visible.empty()) {
    if (values.visible.empty()) values.visible = values.order;
    join(values.visible, visible_of(*other));
  }
  join(values.order, other->order);
  join(values.async, other->async);
  join(values.async_global, other->async_global);
  join(values.tensor_maps, other->tensor_maps);
  join_foreign(values.foreign, other->foreign);
  values.started |= other->started;
  values.after_previous_grid |= other->after_previous_grid;
  join_sc(values.sc, other->sc);
  join_signals(values.signals, other->signals);
}

SharedClock alone(const SharedClock& clock) {
  if (!clock || (!clock->sc && !clock->signals)) return clock;
  auto values = std::make_shared<ClockValues>(*clock);
  values->sc.reset();
  values->signals.reset();
  return values;
}

void join_execution_into(SharedClock& clock, const ClockValues& other) {
  ClockValues& values = writable(clock);
  if (values.execution.empty()) values.execution = values.order;
  join(values.execution, execution_of(other));
  values.started |= other.started;
}

}  // namespace ptxsim
