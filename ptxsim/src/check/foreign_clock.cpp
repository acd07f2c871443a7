#include "check/foreign_clock.hpp"

#include <algorithm>

#include "check/sc_order.hpp"

namespace ptxsim {
namespace {

using List = std::vector<ForeignClock>;

template <class Lists>
auto place_of(Lists& list, uint32_t cluster) {
  return std::lower_bound(list.begin(), list.end(), cluster,
                          [](const ForeignClock& f, uint32_t c) { return f.cluster < c; });
}

void join_one(List& list, uint32_t cluster, const SharedClock& clock) {
  const auto place = place_of(list, cluster);
  if (place != list.end() && place->cluster == cluster)
    join_into(place->clock, clock);
  else
    list.insert(place, {cluster, clock});
}

}  // namespace

SharedClock without_foreign(const SharedClock& clock) {
  if (!clock->foreign) return alone(clock);
  auto values = std::make_shared<ClockValues>(*clock);
  values->foreign.reset();
  values->sc.reset();
  values->signals.reset();
  return values;
}

const ClockValues* foreign_clock(const ClockValues& clock, uint32_t cluster) {
  if (!clock.foreign) return nullptr;
  const auto place = place_of(*clock.foreign, cluster);
  return place != clock.foreign->end() && place->cluster == cluster ? place->clock.get() : nullptr;
}

bool covers_foreign(const ForeignClocks& clocks, const ForeignClocks& part) {
  if (!part || clocks == part) return true;
  if (!clocks) return false;
  return std::ranges::all_of(*part, [&](const ForeignClock& f) {
    const auto place = place_of(*clocks, f.cluster);
    if (place == clocks->end() || place->cluster != f.cluster) return false;
    return place->clock == f.clock || covers(*place->clock, *f.clock);
  });
}

void join_foreign(ForeignClocks& clocks, const ForeignClocks& other) {
  if (covers_foreign(clocks, other)) return;
  if (!clocks) {
    clocks = other;
    return;
  }
  auto joined = std::make_shared<List>(*clocks);
  for (const ForeignClock& f : *other) join_one(*joined, f.cluster, f.clock);
  clocks = std::move(joined);
}

SharedClock clock_for(uint32_t to, uint32_t from, const SharedClock& clock, SharedClock told) {
  if (to == from || !clock) return clock;
  auto values = std::make_shared<ClockValues>();
  auto list = std::make_shared<List>();
  list->push_back({from, told ? std::move(told) : without_foreign(clock)});
  if (clock->foreign)
    for (const ForeignClock& f : *clock->foreign) {
      if (f.cluster == to)
        *values = *f.clock;
      else
        join_one(*list, f.cluster, f.clock);
    }
  values->foreign = std::move(list);
  values->after_previous_grid |= clock->after_previous_grid;
  values->signals = clock->signals;
  if (clock->sc) {
    ScOrder& sc = writable_sc(*values);
    sc.fenced.fill(clock_for(to, from, clock->sc->fenced.back()));
    sc.observed.back() = clock_for(to, from, clock->sc->observed.back());
  }
  return values;
}

void show_to_proxy(ClockValues& clock, ProxyClock proxy) {
  clock.*proxy = clock.order;
  if (!clock.foreign) return;
  auto list = std::make_shared<List>(*clock.foreign);
  for (ForeignClock& f : *list) {
    ClockValues& values = writable(f.clock);
    values.*proxy = values.order;
  }
  clock.foreign = std::move(list);
}

}  // namespace ptxsim
