// The sampler on a simulated clock: time passes only where a case makes it, as fast as the
// simulated neighbours let it.
#include "tools/measure/rounds.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <numbers>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tools/measure/judgement.hpp"

namespace dualgemm::measure {
namespace {

// Work of so many seconds takes `slowdown(time)` times as long.
struct SimulatedMachine {
  double time = 0, others = 0;
  std::mt19937_64 random{1};
  std::function<double(SimulatedMachine&)> slowdown = [](SimulatedMachine&) { return 1.0; };

  double uniform() { return static_cast<double>(random() >> 11) * 0x1p-53; }
  // As of a normal distribution, without its sign.
  double noise() {
    return std::sqrt(-2 * std::log(1 - uniform())) *
           std::abs(std::cos(2 * std::numbers::pi * uniform()));
  }
  RoundCase work(const char* name, double seconds) {
    return {name, [this, seconds] { time += seconds * slowdown(*this); }};
  }
  RoundWorld world() {
    return {.now = [this] { return time; }, .other_cpu = [this] { return others; }};
  }
};

Interval ratio(const RoundReport& report, size_t x, size_t y) {
  return estimate(round_ratios(report.cases[x], report.cases[y])).interval;
}

bool holds(const Interval& interval, double value) {
  return interval.low - 1e-9 <= value && value <= interval.high + 1e-9;
}

// Four cases: the first, one that is its equal, one 2 % and one 50 % slower.
std::vector<RoundCase> four_cases(SimulatedMachine& machine) {
  return {machine.work("first", 0.1), machine.work("equal", 0.1), machine.work("2 %", 0.102),
          machine.work("50 %", 0.15)};
}

TEST(Rounds, AQuietMachineTellsTwoPerCentApart) {
  SimulatedMachine machine;
  const RoundReport report =
      measure_in_rounds(four_cases(machine), RoundOptions{}, machine.world());
  EXPECT_EQ(report.rounds, 9);
  EXPECT_FALSE(report.budget_spent);
  EXPECT_NEAR(report.cases[0].median_seconds, 0.1, 1e-9);
  EXPECT_NEAR(report.cases[3].interval.high, 0.15, 1e-9);
  EXPECT_EQ(compare(ratio(report, 1, 0)), Comparison::kTied);
  EXPECT_EQ(compare(ratio(report, 2, 0)), Comparison::kSlower);
  EXPECT_EQ(compare(ratio(report, 0, 2)), Comparison::kFaster);
  EXPECT_EQ(compare(ratio(report, 3, 2)), Comparison::kSlower);
}

TEST(Rounds, AShortCaseRepeatsUntilTheSampleIsLong) {
  SimulatedMachine machine;
  const RoundReport report = measure_in_rounds(
      {machine.work("short", 0.001), machine.work("long", 2.0)}, RoundOptions{}, machine.world());
  EXPECT_GE(report.cases[0].runs, 9 * 49);
  EXPECT_EQ(report.cases[1].runs, 9);
  EXPECT_EQ(report.cases[0].samples, 9);
}

// Neighbours that take a third of the time on average make the interval wide, not wrong.
TEST(Rounds, NoiseWidensTheIntervalAndIsATie) {
  SimulatedMachine machine;
  machine.slowdown = [](SimulatedMachine& it) { return 1 + 0.4 * it.noise(); };
  const RoundReport report =
      measure_in_rounds(four_cases(machine), RoundOptions{}, machine.world());
  for (const CaseTimes& times : report.cases) EXPECT_EQ(times.samples, 9) << times.name;
  EXPECT_EQ(compare(ratio(report, 2, 0)), Comparison::kTied);
  EXPECT_TRUE(holds(ratio(report, 2, 0), 1.02));
  EXPECT_TRUE(holds(ratio(report, 3, 0), 1.5));
  EXPECT_EQ(compare(ratio(report, 3, 0)), Comparison::kSlower);
}

// The same machine a thousand times: the true ratio is in as many intervals as they say, and two
// equal cases are told apart no more often than that.
TEST(Rounds, IntervalsHoldTheTrueRatioAsOftenAsTheySay) {
  constexpr int kTimes = 1000;
  for (const int rounds : {3, 6, 9}) {
    SCOPED_TRACE(rounds);
    int held = 0, wrong = 0;
    double confidence = 0;
    for (int i = 0; i < kTimes; ++i) {
      SimulatedMachine machine;
      machine.random.seed(static_cast<uint64_t>(i) + 1);
      machine.slowdown = [](SimulatedMachine& it) { return 1 + 0.2 * it.noise(); };
      const RoundReport report =
          measure_in_rounds(four_cases(machine), {.max_rounds = rounds}, machine.world());
      held += holds(ratio(report, 3, 0), 1.5);
      wrong += compare(ratio(report, 1, 0)) != Comparison::kTied;
      confidence = ratio(report, 3, 0).confidence;
    }
    EXPECT_GT(held, (confidence - 0.025) * kTimes);
    EXPECT_LT(wrong, (1 - confidence + 0.025) * kTimes);
  }
}

// A machine that becomes half as fast meanwhile: the second round has the order of the first one
// backwards, so that no case gains by standing in front.
TEST(Rounds, DriftHurtsAllCasesAlike) {
  SimulatedMachine machine;
  machine.slowdown = [](SimulatedMachine& it) { return 1 + it.time / 4; };
  const RoundReport report =
      measure_in_rounds(four_cases(machine), {.max_rounds = 8}, machine.world());
  EXPECT_GT(machine.time, 4);
  EXPECT_GT(report.cases[0].relative_spread, 0.2);
  EXPECT_TRUE(holds(ratio(report, 1, 0), 1.0));
  EXPECT_TRUE(holds(ratio(report, 2, 0), 1.02));
  EXPECT_EQ(compare(ratio(report, 1, 0)), Comparison::kTied);
  EXPECT_EQ(compare(ratio(report, 3, 0)), Comparison::kSlower);
}

// Bursts of a second, in which everything takes three times as long, in a tenth of the time.
TEST(Rounds, BurstsAreOutliersOfAFewRounds) {
  SimulatedMachine machine;
  machine.slowdown = [](SimulatedMachine& it) { return std::fmod(it.time, 10) < 1 ? 3.0 : 1.0; };
  const RoundReport report =
      measure_in_rounds(four_cases(machine), {.max_rounds = 40}, machine.world());
  EXPECT_NEAR(report.cases[0].median_seconds, 0.1, 1e-9);
  EXPECT_NEAR(report.cases[0].interval.high, 0.1, 1e-9);
  EXPECT_EQ(compare(ratio(report, 1, 0)), Comparison::kTied);
  EXPECT_EQ(compare(ratio(report, 2, 0)), Comparison::kSlower);
  EXPECT_EQ(compare(ratio(report, 3, 0)), Comparison::kSlower);
}

// Every fourth run of a short case is interrupted: a sample is the lower quartile of its runs.
TEST(Rounds, InterruptedRunsOfASampleDoNotCount) {
  SimulatedMachine machine;
  int run = 0;
  const RoundCase item{"case", [&] { machine.time += ++run % 4 == 0 ? 0.004 : 0.001; }};
  const RoundReport report = measure_in_rounds({item}, RoundOptions{}, machine.world());
  EXPECT_NEAR(report.cases[0].median_seconds, 0.001, 1e-9);
  EXPECT_NEAR(report.cases[0].relative_spread, 0, 1e-9);
}

TEST(Rounds, EveryRoundHasEveryCaseOnceAndTheNextOneIsItsReverse) {
  SimulatedMachine machine;
  std::vector<std::string> order;
  std::vector<int> rounds;
  measure_in_rounds(four_cases(machine), {.max_rounds = 4}, machine.world(),
                    [&](const std::string& name, int round) {
                      order.push_back(name);
                      rounds.push_back(round);
                    });
  ASSERT_EQ(order.size(), 16u);
  for (int pair = 0; pair < 2; ++pair) {
    const auto first = order.begin() + 8 * pair;
    EXPECT_TRUE(std::equal(first, first + 4, std::reverse_iterator(first + 8)));
    EXPECT_EQ(std::set<std::string>(first, first + 4).size(), 4u);
  }
  EXPECT_EQ(rounds, (std::vector<int>{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4}));
}

// 12 rounds of 0.452 s fit 5.5 s, and no part of one more begins that would end later.
TEST(Rounds, TheBudgetDecidesTheRounds) {
  SimulatedMachine machine;
  const RoundReport report = measure_in_rounds(
      four_cases(machine), {.max_rounds = 1000, .budget_seconds = 5.5}, machine.world());
  EXPECT_TRUE(report.budget_spent);
  EXPECT_LE(report.seconds, 5.5);
  for (const CaseTimes& times : report.cases) EXPECT_GE(times.samples, 12) << times.name;
}

// As a strategy in double precision does beside a fast one.
TEST(Rounds, ASlowCaseLeavesTheOthersTheirRounds) {
  SimulatedMachine machine;
  std::vector<RoundCase> cases = four_cases(machine);
  cases.push_back(machine.work("slow", 20));
  const RoundReport report = measure_in_rounds(
      cases, {.min_rounds = 2, .max_rounds = 9, .budget_seconds = 50}, machine.world());
  EXPECT_EQ(report.cases[4].samples, 2);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(report.cases[i].samples, 9);
  EXPECT_TRUE(report.budget_spent);
  EXPECT_LE(report.seconds, 50);
  EXPECT_EQ(compare(ratio(report, 4, 0)), Comparison::kSlower);
  EXPECT_EQ(ratio(report, 4, 0).confidence, 0.5);
  EXPECT_EQ(compare(ratio(report, 2, 1)), Comparison::kSlower);
}

TEST(Rounds, MinRoundsAreMeasuredWhateverTheyTake) {
  SimulatedMachine machine;
  const RoundReport report =
      measure_in_rounds({machine.work("a", 10), machine.work("b", 10)},
                        {.min_rounds = 2, .budget_seconds = 5}, machine.world());
  EXPECT_TRUE(report.budget_spent);
  EXPECT_EQ(report.rounds, 2);
  EXPECT_EQ(report.cases[0].samples, 2);
  EXPECT_EQ(report.cases[1].samples, 2);
}

// A neighbour that appears during a round makes it longer than it was expected to be.
TEST(Rounds, ABurstEndsARoundAtTheBudget) {
  SimulatedMachine machine;
  machine.slowdown = [](SimulatedMachine& it) { return it.time > 3 ? 50.0 : 1.0; };
  const RoundReport report = measure_in_rounds(
      four_cases(machine), {.max_rounds = 1000, .budget_seconds = 6}, machine.world());
  EXPECT_TRUE(report.budget_spent);
  EXPECT_LE(report.seconds, 6 + 50 * 0.15);
  EXPECT_EQ(compare(ratio(report, 2, 0)), Comparison::kSlower);
}

TEST(Rounds, WorkThatAnotherClockTimes) {
  SimulatedMachine machine;
  int calls = 0;
  const RoundCase timed{"gpu", {}, [&] {
                          machine.time += 1;
                          return ++calls == 2 ? 0.0 : 1e-6;  // the second time without a sample
                        }};
  const RoundReport report =
      measure_in_rounds({timed, machine.work("cpu", 1)}, {.max_rounds = 3}, machine.world());
  EXPECT_EQ(report.cases[0].median_seconds, 1e-6);
  EXPECT_EQ(report.cases[0].samples, 2);
  EXPECT_EQ(round_ratios(report.cases[0], report.cases[1]).size(), 2u);
}

TEST(Rounds, WhatOthersUsedIsReported) {
  SimulatedMachine machine;
  const RoundCase item{"case", [&] {
                         machine.time += 1;
                         machine.others += 1.5;
                       }};
  EXPECT_NEAR(*measure_in_rounds({item}, {}, machine.world()).other_processors, 1.5, 1e-9);
  RoundWorld unwatched = machine.world();
  unwatched.other_cpu = nullptr;
  EXPECT_FALSE(measure_in_rounds({item}, {}, unwatched).other_processors.has_value());
}

TEST(Rounds, NoCasesIsAnEmptyReport) {
  SimulatedMachine machine;
  const RoundReport report = measure_in_rounds({}, RoundOptions{}, machine.world());
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
  const RoundWorld world = system_world();
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
