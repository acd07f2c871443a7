#include "ptxsim/check/clock.hpp"

#include <algorithm>

namespace ptxsim {
namespace {

void join(std::vector<uint32_t>& clock, const std::vector<uint32_t>& other) {
  if (clock.size() < other.size()) clock.resize(other.size(), 0);
  uint32_t* to = clock.data();
  const uint32_t* from = other.data();
  for (size_t i = 0, n = other.size(); i < n; ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace

void raise(std::vector<uint32_t>& clock, uint32_t index, uint32_t value) {
  if (clock.size() <= index) clock.resize(index + 1, 0);
  clock[index] = std::max(clock[index], value);
}

void raise_order(ClockValues& clock, uint32_t index, uint32_t value) {
  raise(clock.order, index, value);
  if (!clock.execution.empty()) raise(clock.execution, index, value);
}

bool covers(const std::vector<uint32_t>& clock, const std::vector<uint32_t>& part) {
  const size_t shared = std::min(clock.size(), part.size());
  for (size_t i = shared; i < part.size(); ++i)
    if (part[i] != 0) return false;
  // Blocks without an early exit inside, which the compiler vectorises.
  constexpr size_t kBlock = 256;
  for (size_t begin = 0; begin < shared; begin += kBlock) {
    const size_t end = std::min(shared, begin + kBlock);
    uint32_t missing = 0;
    for (size_t i = begin; i < end; ++i) missing |= uint32_t{clock[i] < part[i]};
    if (missing != 0) return false;
  }
  return true;
}

bool covers(const ClockValues& clock, const ClockValues& part) {
  if ((part.started & ~clock.started) != 0) return false;
  if (!covers(clock.order, part.order) || !covers(clock.async, part.async)) return false;
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
  join(values.order, other->order);
  join(values.async, other->async);
  values.started |= other->started;
}

void join_execution_into(SharedClock& clock, const ClockValues& other) {
  ClockValues& values = writable(clock);
  if (values.execution.empty()) values.execution = values.order;
  join(values.execution, execution_of(other));
  values.started |= other.started;
}

}  // namespace ptxsim
