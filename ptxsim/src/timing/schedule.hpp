// When each piece of work happens: the clock itself. Events in the order of time; every server
// takes demands in the order in which they come.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/work.hpp"

namespace ptxsim::timing {

// Why a piece could not begin, or a demand not be served, earlier; for the critical path.
struct Cause {
  int32_t piece = -1;          // -1: the beginning
  Delay delay = Delay::kNone;  // between that piece and this one
  bool is_begin_only = false;  // of a pipelined actor: the piece must have begun
};

struct Served {
  double begin = 0, end = 0;
  int64_t behind = -1;  // the demand that the server was busy with until `begin`; -1: it was free
};

// us from the start of the first piece.
struct Times {
  double ready = 0;   // nothing but servers is missing
  double served = 0;  // all servers are done
  double end = 0;
  Cause cause;                   // of `ready`
  int64_t slowest = -1;          // the demand that `served` is set by; -1: none
  bool behind_previous = false;  // `served` is set by the piece before it (pipelined)
};

struct Timeline {
  std::vector<Times> pieces;    // as Work::pieces
  std::vector<Served> demands;  // as Work::demands
  uint32_t last = 0;            // the piece that ends last
  double end = 0;
};

// What others have of the servers at the same time.
struct Sharing {
  double clusters = 1;     // that share L2 and memory, this one among them
  double ctas_per_sm = 1;  // that share an SM's
  double from_memory = 1;  // the part of the demands of memory that L2 does not have already
};

// `work` must have a piece.
Timeline schedule(const Work& work, const Values& values, const Sharing& sharing);
// us that the busiest server needs for all demands.
double busiest_server(const Work& work, const Values& values, const Sharing& sharing);

}  // namespace ptxsim::timing
