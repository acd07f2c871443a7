// Why a schedule takes as long as it does: the chain of pieces, servers and latencies that ends
// last, and what each role waits for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timing/schedule.hpp"

namespace ptxsim::timing {

// A stretch of the critical path, latest first. They follow each other without a gap from the end
// to time 0.
struct Stretch {
  std::string label;  // of a server or a delay
  uint32_t piece;
  double from, to;  // us
};
std::vector<Stretch> critical_path(const Work& work, const Timeline& line);

struct Share {
  std::string label;
  double us;
};
// Summed by label, largest first.
std::vector<Share> shares_of(const std::vector<Stretch>& path);

// A role that waits, and what it waits for: the role and the piece that came last, and what that
// one was held by.
struct Wait {
  std::string role, for_role, for_what, held_by;
  double us;  // of the actor of this role that waits longest
};
// At least `least_us` each, longest first.
std::vector<Wait> waits_of(const Work& work, const Timeline& line, double least_us);

}  // namespace ptxsim::timing
