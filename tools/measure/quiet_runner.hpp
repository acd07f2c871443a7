// Times cases on a machine that is not ours alone: interleaved rounds, idle waited for, every
// sample watched, medians of the undisturbed ones. docs/performance.md tells why.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dualgemm::measure {

struct QuietCase {
  std::string name;
  std::function<void()> run;  // returns when the work is done
};

struct QuietOptions {
  double sample_seconds = 0.4;    // a case repeats until then: the kernel counts CPU time in 10 ms
  double max_other_share = 0.06;  // of one core, used by others during a sample
  double max_slow_host = 0.10;    // a canary this much slower than its median: a busy host
  int min_samples = 3;            // accepted ones per case
  int max_samples = 9;
  double target_spread = 0.02;     // a case is done when its relative spread is no more
  double idle_wait_seconds = 3;    // longest wait for idle processors before one sample
  double budget_seconds = 240;     // no new sample starts after it
  double max_waiting_share = 0.3;  // of the budget, all waits together
  int max_rejected_per_case = 12;  // then the case is given up for its least disturbed samples
};

// What the runner sees of the world; tests replace it.
struct QuietWorld {
  std::function<double()> now;        // seconds, monotonic
  std::function<double()> other_cpu;  // seconds of CPU time that others have used, cumulative
  std::function<void(double)> sleep;  // seconds
  std::function<void()> canary;       // short work of constant length; empty = no check of the host
};

// This process's processors (its affinity mask) in /proc/stat, minus getrusage; steal counts as
// others. Where /proc/stat cannot be read, other_cpu is empty and no sample is rejected for it.
QuietWorld system_world(std::function<void()> canary = {});

struct QuietResult {
  std::string name;
  double median_seconds = 0;  // of one run(); 0 = no sample at all (budget spent)
  double min_seconds = 0;
  double relative_spread = 0;  // interquartile range / median
  int samples = 0;             // behind the median
  int quiet_samples = 0;       // of them; the others are stand-ins (`disturbed`)
  int runs = 0;                // run() calls in them
  int rejected_others = 0;     // samples thrown away: other processes were busy
  int rejected_host = 0;       // samples thrown away: the canary was slow
  bool disturbed = false;      // too few quiet samples: the least disturbed ones stand in
};

struct QuietReport {
  std::vector<QuietResult> cases;  // in the order given
  int rounds = 0;
  double seconds = 0;         // all in all
  double waited_seconds = 0;  // for idle processors
  bool budget_spent = false;
  bool monitored = true;  // false: other processes could not be watched
};

// Each round samples every unfinished case once. Ends when all cases are done or given up, or the
// budget is spent, whichever is first; a case without any quiet sample is marked, not left out.
// `progress`, when given, is called before each sample with the case's name and the round.
QuietReport run_quietly(const std::vector<QuietCase>& cases, const QuietOptions& options,
                        const QuietWorld& world,
                        const std::function<void(const std::string&, int)>& progress = {});

}  // namespace dualgemm::measure
