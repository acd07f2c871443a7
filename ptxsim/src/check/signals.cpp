#include "check/signals.hpp"

#include <algorithm>
#include <bit>

#include "check/foreign_clock.hpp"
#include "check/state.hpp"

namespace ptxsim {
namespace {

constexpr size_t kMostSignals = 64;  // of an address or a warp; of more, the oldest are forgotten

bool is_same_sender(const Signal& a, const Signal& b) {
  return a.cluster == b.cluster && a.warp == b.warp && a.lane == b.lane;
}

}  // namespace

void add_signal(std::vector<Signal>& list, const Signal& signal) {
  const auto same =
      std::ranges::find_if(list, [&](const Signal& s) { return is_same_sender(s, signal); });
  if (same != list.end()) {
    if (same->epoch < signal.epoch) *same = signal;
    return;
  }
  if (list.size() >= kMostSignals) list.erase(list.begin());
  list.push_back(signal);
}

bool covers_signals(const Signals& signals, const Signals& part) {
  if (!part || signals == part) return true;
  if (!signals) return false;
  return std::ranges::all_of(*part, [&](const Signal& signal) {
    const auto same =
        std::ranges::find_if(*signals, [&](const Signal& s) { return is_same_sender(s, signal); });
    return same != signals->end() && same->epoch >= signal.epoch;
  });
}

void join_signals(Signals& signals, const Signals& other) {
  if (covers_signals(signals, other)) return;
  if (!signals) {
    signals = other;
    return;
  }
  auto joined = std::make_shared<std::vector<Signal>>(*signals);
  for (const Signal& signal : *other) add_signal(*joined, signal);
  signals = std::move(joined);
}

bool is_strong_write(const Traits& traits) {
  return traits.has(Trait::kWrites | Trait::kUpdates) && traits.has(Trait::kStrong);
}

bool may_signal(const Program& program) {
  return has_strong_loads(program) && std::ranges::any_of(program.traits, is_strong_write);
}

std::vector<Signal>& Sanitizer::State::signals_through(const MemoryAt& at) {
  return (at.space == Space::kShared ? ctas[at.owner->rank].signals : grid->signals)[at.offset];
}

void Sanitizer::State::send_signal(const Execution& x, int lane, const MemoryAt& at, bool updates) {
  if (!has_signals) return;
  const uint32_t warp = warp_of(x);
  const WarpClocks& clocks = warps[warp];
  const SharedClock& known = shared_clock_of(clocks.groups, lane);
  std::vector<Signal>& list = signals_through(at);
  if (!updates) list.clear();
  for (const Signal& signal : clocks.signals) add_signal(list, signal);
  if (known->signals)
    for (const Signal& signal : *known->signals) add_signal(list, signal);
  add_signal(list, {cluster.index, warp, static_cast<uint32_t>(lane), clocks.epoch,
                    clocks.met_lanes, clocks.met_epoch, alone(known)});
}

// The whole warp goes on when the value is needed.
void Sanitizer::State::receive_signals(const Execution& x, int lane, const MemoryAt& at) {
  if (!has_signals) return;
  std::vector<Signal>& received = warps[warp_of(x)].signals;
  for (const Signal& signal : signals_through(at))
    if (signal.cluster != cluster.index || signal.warp != warp_of(x) ||
        signal.lane != static_cast<uint32_t>(lane))
      add_signal(received, signal);
}

bool Sanitizer::State::is_over_by_signal(const ThreadKnowledge& who, uint32_t of_cluster,
                                         uint32_t warp, uint32_t lanes, uint32_t epoch,
                                         uint32_t load) {
  if (!has_signals || who.warp < 0) return false;
  const auto knows_of = [&](const Signal& signal) {
    uint32_t left = lanes;
    if (signal.cluster == of_cluster && signal.warp == warp) {
      if (signal.epoch >= epoch) left &= ~(1u << signal.lane);
      if (signal.met_epoch >= epoch && (signal.met_lanes >> signal.lane & 1) != 0)
        left &= ~signal.met_lanes;
    }
    const ClockValues* const known = signal.cluster == of_cluster
                                         ? signal.clock.get()
                                         : foreign_clock(*signal.clock, of_cluster);
    return left == 0 || (known != nullptr && knows(known->order, index_of(warp, 0), left, epoch));
  };
  const Signals& handed = who.clock->signals;
  if (!std::ranges::any_of(warps[static_cast<uint32_t>(who.warp)].signals, knows_of) &&
      !(handed && std::ranges::any_of(*handed, knows_of)))
    return false;
  const auto [found, is_new] = used_before_signals.try_emplace(load, false);
  if (is_new) found->second = is_used_before_signals(cluster.machine.program(), load);
  return found->second;
}

}  // namespace ptxsim
