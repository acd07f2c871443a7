// fence.sc and membar: the order that they have among each other (sc_order.hpp). `__threadfence();
// __syncthreads();` and a volatile flag, on both sides, is such an order: no thread has both the
// fence and the flag, as a release pattern wants it.
#include <algorithm>
#include <utility>

#include "check/foreign_clock.hpp"
#include "check/state.hpp"

namespace ptxsim {
namespace {

constexpr size_t kReaches = std::tuple_size_v<ScClocks>;
constexpr uint64_t kShared = uint64_t{1} << 63;

bool covers_all(const ScClocks& clocks, const ScClocks& part) {
  for (size_t i = 0; i < kReaches; ++i)
    if (part[i] && part[i] != clocks[i] && (!clocks[i] || !covers(*clocks[i], *part[i])))
      return false;
  return true;
}

void join_all(ScClocks& clocks, const ScClocks& others) {
  for (size_t i = 0; i < kReaches; ++i) join_into(clocks[i], others[i]);
}

bool is_empty(const ScClocks& clocks) {
  return std::ranges::none_of(clocks, [](const SharedClock& clock) { return clock != nullptr; });
}

void add(std::vector<ScFlag::By>& list, const ScFlag::By& by) {
  if (is_empty(by.fenced)) return;
  const auto same = std::ranges::find_if(list, [&](const ScFlag::By& b) {
    return b.cluster == by.cluster && b.rank == by.rank && b.scope == by.scope;
  });
  if (same == list.end())
    list.push_back(by);
  else
    join_all(same->fenced, by.fenced);
}

}  // namespace

bool covers_sc(const SharedScOrder& order, const SharedScOrder& part) {
  if (!part || order == part) return true;
  return order && covers_all(order->fenced, part->fenced) &&
         covers_all(order->observed, part->observed);
}

void join_sc(SharedScOrder& order, const SharedScOrder& other) {
  if (covers_sc(order, other)) return;
  if (covers_sc(other, order)) {
    order = other;
    return;
  }
  auto joined = std::make_shared<ScOrder>(*order);
  join_all(joined->fenced, other->fenced);
  join_all(joined->observed, other->observed);
  order = std::move(joined);
}

ScOrder& writable_sc(ClockValues& clock) {
  if (!clock.sc)
    clock.sc = std::make_shared<ScOrder>();
  else if (clock.sc.use_count() != 1)
    clock.sc = std::make_shared<ScOrder>(*clock.sc);
  // Every one is made by make_shared<ScOrder>, so the object itself is not const.
  return const_cast<ScOrder&>(*clock.sc);
}

SharedClock across_ctas(const SharedClock& clock) {
  if (!clock || !clock->sc) return clock;
  auto values = std::make_shared<ClockValues>(*clock);
  ScOrder& sc = writable_sc(*values);
  sc.fenced[0] = sc.fenced[1];
  sc.observed[0].reset();
  return values;
}

void Sanitizer::State::mark_own_sc(ClockValues& clock, uint32_t warp, uint32_t lanes) const {
  const OwnScOrder* const own = warps[warp].own_sc.get();
  if (own == nullptr) return;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    for (size_t i = 0; i < kReaches; ++i) {
      if (own->fenced[i][lane] != 0)
        raise_order(writable(writable_sc(clock).fenced[i]), index_of(warp, lane),
                    own->fenced[i][lane]);
      if (own->observed[lane][i]) join_into(writable_sc(clock).observed[i], own->observed[lane][i]);
    }
  }
}

void Sanitizer::State::acquire_by_sc_fence(const Execution& x, size_t reaches) {
  WarpClocks& clocks = warps[warp_of(x)];
  if (clocks.own_sc == nullptr) clocks.own_sc = std::make_unique<OwnScOrder>();
  x.for_lanes([&](int lane) {
    for (size_t i = 0; i < reaches; ++i) {
      const SyncClock observed{std::exchange(clocks.own_sc->observed[lane][i], nullptr), {}};
      acquire(x, 1u << lane, observed);
    }
  });
  change(clocks.groups, x.mask, [&](LaneGroup& group) {
    const SharedScOrder sc = group.clock->sc;
    for (size_t i = 0; sc && i < reaches; ++i) join_into(group.clock, sc->observed[i]);
  });
}

void Sanitizer::State::release_by_sc_fence(const Execution& x, size_t reaches) {
  WarpClocks& clocks = warps[warp_of(x)];
  change(clocks.groups, x.mask, [&](LaneGroup& group) {
    const SharedClock known = alone(group.clock);
    ScOrder& sc = writable_sc(writable(group.clock));
    for (size_t i = 0; i < reaches; ++i) {
      sc.fenced[i] = known;
      sc.observed[i].reset();
    }
  });
  x.for_lanes([&](int lane) {
    for (size_t i = 0; i < reaches; ++i) clocks.own_sc->fenced[i][lane] = clocks.epoch;
  });
  ++clocks.epoch;
}

const ScClocks& Sanitizer::State::fenced_before(const Execution& x, int lane) {
  const uint32_t warp = warp_of(x);
  OwnScOrder& own = *warps[warp].own_sc;
  OwnScOrder::Sent& sent = own.sent[lane];
  const SharedClock& from = shared_clock_of(warps[warp].groups, lane);
  const std::array<uint32_t, 3> epochs{own.fenced[0][lane], own.fenced[1][lane],
                                       own.fenced[2][lane]};
  if (sent.from == from && sent.epochs == epochs) return sent.clocks;
  sent = {from, epochs, from->sc ? from->sc->fenced : ScClocks{}};
  for (size_t i = 0; i < kReaches; ++i)
    if (epochs[i] != 0) raise_order(writable(sent.clocks[i]), index_of(warp, lane), epochs[i]);
  return sent.clocks;
}

void Sanitizer::State::observe(const Execution& x, int lane, Scope scope,
                               const std::vector<ScFlag::By>& list) {
  for (const ScFlag::By& by : list) {
    const Scope needed = scope_to(x.cta.rank, by.cluster, by.rank);
    if (std::min(scope, by.scope) < needed) continue;
    const size_t reach = reach_of(needed);
    join_into(warps[warp_of(x)].own_sc->observed[lane][reach],
              clock_for(cluster.index, by.cluster, by.fenced[reach]));
  }
}

void Sanitizer::State::note_strong_access(const Execution& x, int lane, const MemoryAt& at,
                                          bool writes) {
  if (!has_sc_fences) return;
  WarpClocks& clocks = warps[warp_of(x)];
  if (clocks.own_sc == nullptr) clocks.own_sc = std::make_unique<OwnScOrder>();
  const bool is_shared = at.space == Space::kShared;
  ScFlag& flag = (is_shared ? ctas[at.owner->rank].sc_flags : grid->sc_flags)[at.offset];
  const uint64_t address =
      is_shared ? kShared | uint64_t{at.owner->rank} << 32 | at.offset : at.offset;
  uint64_t &address_read = clocks.own_sc->address_read[lane],
           &writes_read = clocks.own_sc->writes_read[lane];
  if (writes || address_read != address || writes_read != flag.writes)
    observe(x, lane, at.scope, flag.until_write);
  const ScFlag::By by{cluster.index, x.cta.rank, at.scope, fenced_before(x, lane)};
  if (writes) {
    observe(x, lane, at.scope, flag.read_since);
    for (const ScFlag::By& reader : std::exchange(flag.read_since, {}))
      add(flag.until_write, reader);
    add(flag.until_write, by);
    ++flag.writes;
  } else {
    add(flag.read_since, by);
    address_read = address;
    writes_read = flag.writes;
  }
}

}  // namespace ptxsim
