// Which strategy was faster, as far as the samples allow to say so.
#pragma once

#include "tools/cli/bench_report.hpp"

namespace dualgemm::cli {

struct Ranked {
  const BenchResult* result;  // for the first shape
  int place;                  // from 1; shared with the line above where `tied`
  bool tied;                  // within the noise of the first that has this place
  double milliseconds;        // geometric mean over the shapes
  double relative_spread;     // the largest of the shapes'
  std::optional<double> speed_up;
};

struct Unranked {
  std::string name, why;
};

struct Ranking {
  std::vector<Ranked> ranked;      // fastest first
  std::vector<Unranked> unranked;  // that have a time, but not one to compare
  // Where a busy machine leaves nothing to rank: all that have a right result and some time for
  // every shape, disturbed or not, fastest first. An order, to be read as one: no place, no tie.
  std::vector<Ranked> provisional;
};

// Ranked is what has a settled time and a right result for every shape.
Ranking rank(const BenchReport& report);

}  // namespace dualgemm::cli
