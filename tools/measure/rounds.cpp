#include "tools/measure/rounds.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
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

// ---- rounds
// --------------------------------------------------------------------------------------

struct CaseState {
  CaseTimes times;
  double spent = 0;  // seconds on all its samples
  // What one more is expected to take.
  double expected() const { return times.samples > 0 ? spent / times.samples : 0; }
};

class Rounds {
 public:
  Rounds(const std::vector<RoundCase>& cases, const RoundOptions& options, const RoundWorld& world)
      : cases_(cases), options_(options), world_(world), random_(options.seed) {
    start_ = world.now();
    states_.resize(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) states_[i].times.name = cases[i].name;
    order_.resize(cases.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
  }

  double elapsed() const { return world_.now() - start_; }
  double left() const { return options_.budget_seconds - elapsed(); }
  std::vector<CaseState>& states() { return states_; }

  // The cases of the next round in their order; none: the budget has no time for it.
  std::vector<size_t> next_round(int round) {
    if (round % 2 == 0)
      std::shuffle(order_.begin(), order_.end(), random_);
    else
      std::reverse(order_.begin(), order_.end());
    if (round < options_.min_rounds) return order_;
    std::vector<size_t> by_time = order_;
    std::sort(by_time.begin(), by_time.end(),
              [&](size_t x, size_t y) { return states_[x].expected() < states_[y].expected(); });
    double sum = 0;
    size_t fitting = 0;
    while (fitting < by_time.size() &&
           (sum += states_[by_time[fitting]].expected()) <= std::max(0.0, left()))
      ++fitting;
    if (fitting < by_time.size() && fitting < 2) return {};  // one alone is compared with nothing
    std::vector<bool> fits(order_.size(), false);
    for (size_t i = 0; i < fitting; ++i) fits[by_time[i]] = true;
    std::vector<size_t> chosen;
    for (const size_t index : order_) {
      if (fits[index]) chosen.push_back(index);
    }
    return chosen;
  }

  void sample(size_t index, int round) {
    const RoundCase& item = cases_[index];
    CaseState& state = states_[index];
    const double begin = world_.now();
    double seconds = 0;
    if (item.timed) {
      seconds = item.timed();
      ++state.times.runs;
    } else {
      seconds = lower_quartile_of_runs(item, state.times.runs);
    }
    state.spent += world_.now() - begin;
    if (seconds <= 0) return;
    state.times.rounds.resize(static_cast<size_t>(round) + 1, 0.0);
    state.times.rounds.back() = seconds;
    ++state.times.samples;
  }

 private:
  double lower_quartile_of_runs(const RoundCase& item, int64_t& runs) {
    std::vector<double> seconds;
    const double begin = world_.now();
    for (double before = begin; before - begin < options_.sample_seconds;) {
      item.run();
      const double after = world_.now();
      seconds.push_back(after - before);
      before = after;
    }
    if (seconds.empty()) return 0;
    runs += static_cast<int64_t>(seconds.size());
    std::sort(seconds.begin(), seconds.end());
    return quantile(seconds, 0.25);
  }

  const std::vector<RoundCase>& cases_;
  const RoundOptions& options_;
  const RoundWorld& world_;
  std::mt19937_64 random_;
  std::vector<size_t> order_;
  std::vector<CaseState> states_;
  double start_ = 0;
};

}  // namespace

RoundWorld system_world() {
  RoundWorld world;
  world.now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  if (busy_cpu_seconds()) {
    world.other_cpu = [] { return busy_cpu_seconds().value_or(0) - own_cpu_seconds(); };
  }
  return world;
}

void summarise(CaseTimes& times) {
  std::vector<double> seconds;
  for (const double sample : times.rounds) {
    if (sample > 0) seconds.push_back(sample);
  }
  times.samples = static_cast<int>(seconds.size());
  if (seconds.empty()) return;
  std::sort(seconds.begin(), seconds.end());
  times.median_seconds = quantile(seconds, 0.5);
  times.min_seconds = seconds.front();
  times.relative_spread =
      (quantile(seconds, 0.75) - quantile(seconds, 0.25)) / times.median_seconds;
  times.interval = median_interval(std::move(seconds));
}

RoundReport measure_in_rounds(const std::vector<RoundCase>& cases, const RoundOptions& options,
                              const RoundWorld& world,
                              const std::function<void(const std::string&, int)>& progress) {
  RoundReport report;
  const double others_before = world.other_cpu ? world.other_cpu() : 0;
  Rounds rounds(cases, options, world);
  for (bool going_on = !cases.empty(); going_on && report.rounds < options.max_rounds;) {
    const int round = report.rounds;
    const std::vector<size_t> chosen = rounds.next_round(round);
    report.budget_spent = report.budget_spent || chosen.size() < cases.size();
    going_on = !chosen.empty();
    if (going_on) ++report.rounds;
    for (const size_t index : chosen) {
      if (round >= options.min_rounds && rounds.left() <= 0) {
        report.budget_spent = true;
        going_on = false;
        break;
      }
      if (progress) progress(cases[index].name, round + 1);
      rounds.sample(index, round);
    }
  }
  for (CaseState& state : rounds.states()) {
    summarise(state.times);
    report.cases.push_back(std::move(state.times));
  }
  report.seconds = rounds.elapsed();
  if (world.other_cpu && report.seconds > 0) {
    const double others = world.other_cpu() - others_before;
    report.other_processors = std::max(0.0, others / report.seconds);
  }
  return report;
}

}  // namespace dualgemm::measure
