// Times cases on a machine that is not ours alone: in rounds, each of which samples every case
// once, so that what disturbs one of them disturbs the others, too. Nothing is thrown away and
// nothing is waited for: cases are compared round by round. docs/performance.md tells why.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/measure/order_statistics.hpp"

namespace dualgemm::measure {

struct RoundCase {
  std::string name;
  std::function<void()> run;  // returns when the work is done
  // Instead of `run`, for work that another clock times: seconds per run, or 0 for no sample.
  std::function<double()> timed = {};
};

struct RoundOptions {
  double sample_seconds = 0.05;  // a shorter case repeats until then
  int min_rounds = 3;            // of every case, whatever they take
  int max_rounds = 9;
  double budget_seconds = 240;  // after min_rounds no sample starts that would end later
  uint64_t seed = 1;            // of the order within the rounds
};

// What the sampler sees of the world; tests replace it.
struct RoundWorld {
  std::function<double()> now;        // seconds, monotonic
  std::function<double()> other_cpu;  // seconds of CPU time that others have used, cumulative
};

// This process's processors (its affinity mask) in /proc/stat, minus getrusage; steal counts as
// others. Where /proc/stat cannot be read, other_cpu is empty.
RoundWorld system_world();

struct CaseTimes {
  std::string name;
  // Seconds of one run in each round, 0: the case was not in that round. A sample's runs give their
  // lower quartile: what interrupts one of them makes it longer, never shorter.
  std::vector<double> rounds;
  int64_t runs = 0;
  double median_seconds = 0;   // over the rounds; 0 = no sample at all
  double min_seconds = 0;      // of the rounds
  double relative_spread = 0;  // interquartile range / median
  Interval interval;           // of the median, in seconds
  int samples = 0;
};

// Fills in what follows from `rounds`.
void summarise(CaseTimes& times);

struct RoundReport {
  std::vector<CaseTimes> cases;  // in the order given
  int rounds = 0;
  double seconds = 0;                      // all in all
  bool budget_spent = false;               // before max_rounds
  std::optional<double> other_processors;  // that others used meanwhile; nothing: not to be known
};

// The order within a round is drawn, and the next round has its reverse: a machine that becomes
// slower meanwhile hurts all cases alike. A round that the rest of the budget has no time for is
// measured without its slowest cases, which keep the samples that they have.
// `progress`, when given, is called before each sample with the case's name and the round from 1.
RoundReport measure_in_rounds(const std::vector<RoundCase>& cases, const RoundOptions& options,
                              const RoundWorld& world,
                              const std::function<void(const std::string&, int)>& progress = {});

}  // namespace dualgemm::measure
