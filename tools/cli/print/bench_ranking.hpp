// Which strategy was faster, as far as the rounds allow to say so.
#pragma once

#include "tools/cli/print/bench_report.hpp"

namespace dualgemm::cli {

struct Ranked {
  const BenchResult* result;      // for the first shape
  int place;                      // one more than the strategies that are faster for sure
  std::vector<std::string> tied;  // names of those that it cannot be told from
  double milliseconds;            // geometric mean over the shapes
  measure::Estimate over_first;   // its time over that of the first in the list
  std::optional<double> speed_up;
};

struct Unranked {
  std::string name, why;
};

struct Ranking {
  std::vector<Ranked> ranked;      // by place, those of one place by time
  std::vector<Unranked> unranked;  // that have a time, but not one to compare
  double confidence = 0;           // the least of all pairs' intervals; 0: one has a single round
};

// Ranked is what has a time and a right result for every shape. Two strategies are compared by the
// ratio of their times in each round that both were in, of all shapes: the interval of its median
// says which of them is faster, or that they cannot be told apart.
Ranking rank(const BenchReport& report);

// The time of x over that of y, names of results, in the rounds of all shapes.
measure::Estimate time_ratio(const BenchReport& report, const std::string& x, const std::string& y);

}  // namespace dualgemm::cli
