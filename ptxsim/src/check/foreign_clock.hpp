// What a thread knows of other clusters of the grid. Clusters tell each other something through
// global memory only, so that most threads know nothing and pay nothing.
#pragma once

#include "check/clock.hpp"

namespace ptxsim {

using ProxyClock = std::vector<uint32_t> ClockValues::*;  // async, async_global or tensor_maps
using ForeignClocks = std::shared_ptr<const std::vector<ForeignClock>>;

bool covers_foreign(const ForeignClocks& clocks, const ForeignClocks& part);
void join_foreign(ForeignClocks& clocks, const ForeignClocks& other);
// The clock of that cluster; nullptr when nothing of it is known.
const ClockValues* foreign_clock(const ClockValues& clock, uint32_t cluster);

// A clock of a thread of cluster `from`, as a thread of cluster `to` takes it over; `told`: what
// without_foreign() makes of it, if it has been made.
SharedClock clock_for(uint32_t to, uint32_t from, const SharedClock& clock,
                      SharedClock told = nullptr);
// What other clusters know of a cluster: its own clock, without what that one knows of others.
SharedClock without_foreign(const SharedClock& clock);

// The effect of a proxy fence: what happened before is seen through the proxy, in other clusters
// too.
void show_to_proxy(ClockValues& clock, ProxyClock proxy);

}  // namespace ptxsim
