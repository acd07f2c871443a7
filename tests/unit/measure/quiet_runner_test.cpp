// The runner in a simulated world: time passes only where a case, a wait or a neighbour makes it.
#include "tools/measure/quiet_runner.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace dualgemm::measure {
namespace {

// Others use `other_share` of a core while time passes, and slow the cases and the canary down.
struct SimulatedWorld {
  double time = 0, others = 0, other_share = 0, slowdown = 1;

  void pass(double seconds) {
    time += seconds;
    others += seconds * other_share;
  }
  QuietCase work(const char* name, double seconds) {
    return {name, [this, seconds] { pass(seconds * slowdown); }};
  }
  QuietWorld world(bool with_canary = false) {
    QuietWorld world{.now = [this] { return time; },
                     .other_cpu = [this] { return others; },
                     .sleep = [this](double seconds) { pass(seconds); },
                     .canary = {}};
    if (with_canary) world.canary = [this] { pass(0.001 * slowdown); };
    return world;
  }
};

TEST(QuietRunner, MedianOfAQuietMachineIsTheTrueTime) {
  SimulatedWorld machine;
  const QuietReport report = run_quietly({machine.work("short", 0.001), machine.work("long", 2.0)},
                                         QuietOptions{}, machine.world());
  ASSERT_EQ(report.cases.size(), 2u);
  EXPECT_NEAR(report.cases[0].median_seconds, 0.001, 1e-9);
  EXPECT_NEAR(report.cases[1].median_seconds, 2.0, 1e-9);
  EXPECT_EQ(report.cases[0].samples, QuietOptions{}.min_samples);
  EXPECT_GE(report.cases[0].runs, 3 * 399);  // a sample repeats a short case
  EXPECT_EQ(report.cases[1].runs, 3);
  EXPECT_EQ(report.rounds, 3);
  EXPECT_FALSE(report.cases[0].disturbed);
  EXPECT_FALSE(report.budget_spent);
}

TEST(QuietRunner, RoundsAreInterleaved) {
  SimulatedWorld machine;
  std::vector<std::string> order;
  run_quietly({machine.work("a", 1), machine.work("b", 1)}, QuietOptions{}, machine.world(),
              [&](const std::string& name, int) { order.push_back(name); });
  EXPECT_EQ(order, (std::vector<std::string>{"a", "b", "a", "b", "a", "b"}));
}

TEST(QuietRunner, SamplesWithABusyNeighbourAreRejectedAndCounted) {
  SimulatedWorld machine;
  int sample = 0;
  // The neighbour works during the first two samples and stops when the runner waits.
  QuietWorld world = machine.world();
  world.sleep = [&](double seconds) {
    machine.other_share = 0;
    machine.pass(seconds);
  };
  const QuietCase disturbed{"case", [&] {
                              const bool busy = ++sample <= 2;
                              machine.other_share = busy ? 0.5 : 0.0;
                              machine.pass(busy ? 1.5 : 1.0);
                            }};
  const QuietReport report = run_quietly({disturbed}, QuietOptions{}, world);
  EXPECT_EQ(report.cases[0].rejected_others, 2);
  EXPECT_EQ(report.cases[0].rejected_host, 0);
  EXPECT_EQ(report.cases[0].samples, 3);
  EXPECT_NEAR(report.cases[0].median_seconds, 1.0, 1e-9);
  EXPECT_FALSE(report.cases[0].disturbed);
  EXPECT_GT(report.waited_seconds, 0);
}

TEST(QuietRunner, SmallShareOfOthersIsAllowed) {
  SimulatedWorld machine;
  machine.other_share = 0.05;
  const QuietReport report =
      run_quietly({machine.work("case", 1.0)}, QuietOptions{}, machine.world());
  EXPECT_EQ(report.cases[0].rejected_others, 0);
  EXPECT_EQ(report.cases[0].samples, 3);
}

TEST(QuietRunner, MachineThatIsNeverQuietEndsAndIsMarked) {
  SimulatedWorld machine;
  machine.other_share = 1.0;
  const QuietOptions options{.budget_seconds = 60};
  const QuietReport report =
      run_quietly({machine.work("a", 0.5), machine.work("b", 0.5)}, options, machine.world());
  for (const QuietResult& result : report.cases) {
    EXPECT_TRUE(result.disturbed) << result.name;
    EXPECT_GT(result.rejected_others, 0);
    EXPECT_NEAR(result.median_seconds, 0.5, 1e-9);
  }
  EXPECT_LE(report.seconds, options.budget_seconds + 5);
  EXPECT_LE(report.waited_seconds,
            options.budget_seconds * options.max_waiting_share + options.idle_wait_seconds + 0.2);
}

TEST(QuietRunner, LeastDisturbedSamplesStandIn) {
  SimulatedWorld machine;
  int sample = 0;
  // Shares 0.9, 0.8, 0.7, ... down to 0.3, never acceptable; a larger share costs more time.
  const QuietCase item{"case", [&] {
                         machine.other_share = 0.9 - 0.1 * sample;
                         machine.pass(1.0 + machine.other_share);
                         ++sample;
                       }};
  const QuietOptions options{.idle_wait_seconds = 0, .max_rejected_per_case = 7};
  const QuietReport report = run_quietly({item}, options, machine.world());
  EXPECT_EQ(report.cases[0].rejected_others, 7);
  EXPECT_TRUE(report.cases[0].disturbed);
  EXPECT_NEAR(report.cases[0].median_seconds, 1.4, 1e-9);  // of 1.3, 1.4, 1.5
}

TEST(QuietRunner, SlowHostIsRejectedByTheCanary) {
  SimulatedWorld machine;
  int sample = 0;
  const QuietCase item{"case", [&] {
                         machine.slowdown = ++sample == 3 ? 1.5 : 1.0;
                         machine.pass(machine.slowdown);
                       }};
  const QuietReport report =
      run_quietly({item}, QuietOptions{.min_samples = 4}, machine.world(/*with_canary=*/true));
  EXPECT_GE(report.cases[0].rejected_host, 1);
  EXPECT_EQ(report.cases[0].rejected_others, 0);
  EXPECT_EQ(report.cases[0].samples, 4);
  EXPECT_NEAR(report.cases[0].median_seconds, 1.0, 1e-9);
}

TEST(QuietRunner, NoisyCaseGetsMoreSamplesThanASteadyOne) {
  SimulatedWorld machine;
  int sample = 0;
  const QuietCase noisy{"noisy", [&] { machine.pass(1.0 + 0.2 * (sample++ % 3)); }};
  const QuietReport report =
      run_quietly({machine.work("steady", 1.0), noisy}, QuietOptions{}, machine.world());
  EXPECT_EQ(report.cases[0].samples, QuietOptions{}.min_samples);
  EXPECT_EQ(report.cases[1].samples, QuietOptions{}.max_samples);
  EXPECT_NEAR(report.cases[1].median_seconds, 1.2, 1e-9);
  EXPECT_GT(report.cases[1].relative_spread, 0.1);
}

TEST(QuietRunner, BudgetEndsTheRunAndLeavesNoInventedNumber) {
  SimulatedWorld machine;
  const QuietReport report = run_quietly({machine.work("a", 10), machine.work("b", 10)},
                                         QuietOptions{.budget_seconds = 5}, machine.world());
  EXPECT_TRUE(report.budget_spent);
  EXPECT_EQ(report.cases[0].samples, 1);
  EXPECT_EQ(report.cases[1].samples, 0);
  EXPECT_EQ(report.cases[1].median_seconds, 0);
}

TEST(QuietRunner, WithoutAMonitorNothingIsRejectedAndTheReportSaysSo) {
  SimulatedWorld machine;
  machine.other_share = 1.0;
  QuietWorld world = machine.world();
  world.other_cpu = nullptr;
  const QuietReport report = run_quietly({machine.work("case", 1.0)}, QuietOptions{}, world);
  EXPECT_FALSE(report.monitored);
  EXPECT_EQ(report.cases[0].samples, 3);
}

TEST(QuietRunner, NoCasesIsAnEmptyReport) {
  SimulatedWorld machine;
  const QuietReport report = run_quietly({}, QuietOptions{}, machine.world());
  EXPECT_TRUE(report.cases.empty());
  EXPECT_EQ(report.rounds, 0);
}

double own_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// Seconds in which the processors of this process did anything, for any process: /proc/stat,
// proc(5).
double busy_seconds() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  EXPECT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
  std::ifstream stat("/proc/stat");
  std::string line;
  int64_t ticks = 0;
  while (std::getline(stat, line)) {
    int cpu = 0;
    long long user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
    if (std::sscanf(line.c_str(), "cpu%d %lld %lld %lld %lld %lld %lld %lld %lld", &cpu, &user,
                    &nice, &system, &idle, &iowait, &irq, &softirq, &steal) == 9 &&
        CPU_ISSET(cpu, &mine)) {
      ticks += user + nice + system + irq + softirq + steal;
    }
  }
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// What others used is what all used without this process. All three counters only grow, so what the
// world says lies between the differences of readings before and after it, however long they take.
TEST(SystemWorld, OwnWorkIsNotCountedAsSomeoneElses) {
  const QuietWorld world = system_world();
  if (!world.other_cpu) GTEST_SKIP() << "/proc/stat is not readable here";
  constexpr double kOwn = 0.2, kRounding = 1e-6;
  volatile double work = 0;
  while (own_seconds() < kOwn) work = work + 1;
  const double busy_before = busy_seconds(), own_before = own_seconds();
  const double others = world.other_cpu();
  const double busy_after = busy_seconds(), own_after = own_seconds();
  EXPECT_GE(others, busy_before - own_after - kRounding);
  EXPECT_LE(others, busy_after - own_before + kRounding);
}

}  // namespace
}  // namespace dualgemm::measure
