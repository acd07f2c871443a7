// What the streams' work does to memory, and whether anything orders it: R23. Work is done when it
// is issued, one after the other, so that values are those of one order; on a GPU streams run
// beside each other unless an event, the legacy default stream or a host that waits comes between.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ptxsim/machine/grid_trail.hpp"
#include "ptxsim/report.hpp"

namespace ptxsim::cuda {

// By stream: how much of its work is over.
using StreamClock = std::map<uint64_t, uint64_t>;
void join(StreamClock& clock, const StreamClock& other);

class StreamOrder {
 public:
  // What has waited for it need not be judged again: work that is issued from now on comes after.
  void host_waited_for(const StreamClock& clock);
  const StreamClock& known_to_host() const { return host_; }

  // Work of a stream, the `clock[stream]`-th, that comes after what `clock` says. The reports name
  // the accesses of both.
  std::vector<Report> add(uint64_t stream, const StreamClock& clock,
                          std::shared_ptr<const GridTrail> trail);

 private:
  struct Work {
    uint64_t stream, number;
    std::shared_ptr<const GridTrail> trail;
  };
  std::vector<Work> open_;
  StreamClock host_;
};

}  // namespace ptxsim::cuda
