#include "tools/measure/quiet_runner.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

namespace dualgemm::measure {
namespace {

// ---- the real world
// ------------------------------------------------------------------------------

// Busy seconds of the processors in our affinity mask, steal included; nothing if unreadable.
std::optional<double> busy_cpu_seconds() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof(mine), &mine) != 0) return std::nullopt;
  std::ifstream stat("/proc/stat");
  std::string line;
  double ticks = 0;
  int found = 0;
  while (std::getline(stat, line)) {
    if (line.rfind("cpu", 0) != 0 || line.size() < 4 || line[3] < '0' || line[3] > '9') continue;
    std::istringstream fields(line.substr(3));
    int cpu = 0;
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
    fields >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
    if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &mine)) continue;
    ticks += user + nice + system + irq + softirq + steal;
    ++found;
  }
  if (found == 0) return std::nullopt;
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double own_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// ---- one sample
// ----------------------------------------------------------------------------------

struct Sample {
  double seconds_per_run;
  int runs;
  double disturbance;  // worst of the two shares, each divided by what is allowed; > 1: rejected
  bool host;           // others kept still: what disturbed was the host
};

struct CaseState {
  std::vector<Sample> accepted, rejected;
  bool finished = false;
};

double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::vector<double> sorted_seconds(const std::vector<Sample>& samples) {
  std::vector<double> seconds;
  seconds.reserve(samples.size());
  for (const Sample& sample : samples) seconds.push_back(sample.seconds_per_run);
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

double relative_spread(const std::vector<double>& sorted) {
  return (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / quantile(sorted, 0.5);
}

class Runner {
 public:
  Runner(const QuietOptions& options, const QuietWorld& world) : options_(options), world_(world) {
    start_ = world_.now();
  }

  double elapsed() const { return world_.now() - start_; }
  bool budget_spent() const { return elapsed() >= options_.budget_seconds; }
  double waited() const { return waited_; }

  // Until others use no more than their share over a tenth of a second, or the wait is over.
  void wait_for_idle() {
    if (!world_.other_cpu || !last_was_disturbed_) return;
    if (waited_ >= options_.budget_seconds * options_.max_waiting_share) return;
    constexpr double kWindow = 0.1;
    const double begin = world_.now();
    for (double before = world_.other_cpu();;) {
      world_.sleep(kWindow);
      const double after = world_.other_cpu();
      if (after - before <= options_.max_other_share * kWindow) break;
      if (world_.now() - begin >= options_.idle_wait_seconds || budget_spent()) break;
      before = after;
    }
    waited_ += world_.now() - begin;
  }

  Sample sample(const QuietCase& item) {
    const double canary_before = time_canary();
    const double others_before = world_.other_cpu ? world_.other_cpu() : 0;
    const double begin = world_.now();
    int runs = 0;
    double taken = 0;
    do {
      item.run();
      ++runs;
      taken = world_.now() - begin;
    } while (taken < options_.sample_seconds);
    const double others = world_.other_cpu ? world_.other_cpu() - others_before : 0;
    const double slow_host = std::max(canary_excess(canary_before), canary_excess(time_canary()));

    const double by_others = std::max(0.0, others) / taken / options_.max_other_share;
    const double by_host = slow_host / options_.max_slow_host;
    last_was_disturbed_ = by_others > 1;
    return {taken / runs, runs, std::max(by_others, by_host), /*host=*/by_others <= 1};
  }

 private:
  double time_canary() {
    if (!world_.canary) return 0;
    const double begin = world_.now();
    world_.canary();
    const double taken = world_.now() - begin;
    canaries_.insert(std::upper_bound(canaries_.begin(), canaries_.end(), taken), taken);
    return taken;
  }
  // How much slower than the median canary so far, as a fraction.
  double canary_excess(double taken) const {
    return canaries_.empty() ? 0 : taken / canaries_[canaries_.size() / 2] - 1;
  }

  const QuietOptions& options_;
  const QuietWorld& world_;
  double start_ = 0, waited_ = 0;
  bool last_was_disturbed_ = true;  // the first sample waits too
  std::vector<double> canaries_;    // sorted
};

bool is_finished(const CaseState& state, const QuietOptions& options) {
  const int accepted = static_cast<int>(state.accepted.size());
  if (static_cast<int>(state.rejected.size()) >= options.max_rejected_per_case) return true;
  if (accepted >= options.max_samples) return true;
  return accepted >= options.min_samples &&
         relative_spread(sorted_seconds(state.accepted)) <= options.target_spread;
}

QuietResult summarise(const std::string& name, CaseState state, const QuietOptions& options) {
  QuietResult result{.name = name};
  for (const Sample& sample : state.rejected) {
    ++(sample.host ? result.rejected_host : result.rejected_others);
  }
  result.quiet_samples = static_cast<int>(state.accepted.size());
  const size_t wanted = static_cast<size_t>(std::max(1, options.min_samples));
  if (state.accepted.size() < wanted && !state.rejected.empty()) {
    result.disturbed = true;
    std::sort(state.rejected.begin(), state.rejected.end(),
              [](const Sample& a, const Sample& b) { return a.disturbance < b.disturbance; });
    const size_t borrowed = std::min(wanted - state.accepted.size(), state.rejected.size());
    state.accepted.insert(state.accepted.end(), state.rejected.begin(),
                          state.rejected.begin() + static_cast<std::ptrdiff_t>(borrowed));
  }
  if (state.accepted.empty()) return result;
  const std::vector<double> seconds = sorted_seconds(state.accepted);
  result.median_seconds = quantile(seconds, 0.5);
  result.min_seconds = seconds.front();
  result.relative_spread = relative_spread(seconds);
  result.samples = static_cast<int>(seconds.size());
  for (const Sample& sample : state.accepted) result.runs += sample.runs;
  return result;
}

}  // namespace

QuietWorld system_world(std::function<void()> canary) {
  QuietWorld world;
  world.now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  world.sleep = [](double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  if (busy_cpu_seconds()) {
    world.other_cpu = [] { return busy_cpu_seconds().value_or(0) - own_cpu_seconds(); };
  }
  world.canary = std::move(canary);
  return world;
}

QuietReport run_quietly(const std::vector<QuietCase>& cases, const QuietOptions& options,
                        const QuietWorld& world,
                        const std::function<void(const std::string&, int)>& progress) {
  QuietReport report;
  report.monitored = static_cast<bool>(world.other_cpu);
  std::vector<CaseState> states(cases.size());
  Runner runner(options, world);
  for (bool unfinished = !cases.empty(); unfinished && !report.budget_spent; ++report.rounds) {
    unfinished = false;
    for (size_t i = 0; i < cases.size(); ++i) {
      if (states[i].finished) continue;
      if (runner.budget_spent()) {
        report.budget_spent = true;
        break;
      }
      runner.wait_for_idle();
      if (progress) progress(cases[i].name, report.rounds + 1);
      const Sample sample = runner.sample(cases[i]);
      (sample.disturbance > 1 ? states[i].rejected : states[i].accepted).push_back(sample);
      states[i].finished = is_finished(states[i], options);
      unfinished = unfinished || !states[i].finished;
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    report.cases.push_back(summarise(cases[i].name, std::move(states[i]), options));
  }
  report.seconds = runner.elapsed();
  report.waited_seconds = runner.waited();
  return report;
}

}  // namespace dualgemm::measure
