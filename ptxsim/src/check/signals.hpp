// What a strong access of one thread has told another without a release or an acquire: that it has
// happened. It orders no memory. But loads whose results the sender had used before are over, and
// what they read may be overwritten: a value that depends on them has arrived.
#pragma once

#include <memory>
#include <vector>

#include "check/clock.hpp"

namespace ptxsim {

struct Signal {
  uint32_t cluster, warp, lane, epoch;  // of the sender
  uint32_t met_lanes, met_epoch;        // as WarpClocks has them
  SharedClock clock;                    // what it knew, and no signals in it
};
using Signals = std::shared_ptr<const std::vector<Signal>>;

// The newest of each sender.
void add_signal(std::vector<Signal>& list, const Signal& signal);
bool covers_signals(const Signals& signals, const Signals& part);
void join_signals(Signals& signals, const Signals& other);

}  // namespace ptxsim
