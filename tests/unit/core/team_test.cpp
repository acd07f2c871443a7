// The threads of a call: every unit once, no two threads in one seat, no thread waits for a helper
// that has not begun, any number of teams at a time, fork(), threads that are not to be had.
#include "core/team.hpp"

#include <fenv.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/sanitizers.hpp"

namespace dualgemm::core {
namespace {

// Something that happens sooner or later; the limit only ends a test that would hang.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// Runs one unit for each thread of the team, all at once; whether they met. on_meeting: by each.
bool all_meet(
    Team& team, const std::function<void(int seat)>& on_meeting = [](int) {}) {
  std::atomic<int> here{0}, missed{0};
  team.run(team.threads(), [&](int64_t, int seat) {
    here.fetch_add(1);
    if (!eventually([&] { return here.load() == team.threads(); })) missed.fetch_add(1);
    on_meeting(seat);
  });
  return missed.load() == 0;
}

TEST(Team, EveryUnitOnceAndOneThreadInASeat) {
  for (const int threads : {1, 2, 3, 8}) {
    Team team(threads);
    ASSERT_GE(team.threads(), 1);
    ASSERT_LE(team.threads(), threads);
    std::vector<std::atomic<int>> seats(static_cast<size_t>(threads));
    for (const int64_t units : {0, 1, 2, 3, 100, 5000}) {
      std::vector<int> visits(static_cast<size_t>(units));
      std::atomic<int> collisions{0};
      team.run(units, [&](int64_t unit, int seat) {
        std::atomic<int>& mine = seats.at(static_cast<size_t>(seat));
        if (mine.fetch_add(1) != 0) collisions.fetch_add(1);
        ++visits.at(static_cast<size_t>(unit));
        mine.fetch_sub(1);
      });
      EXPECT_EQ(collisions.load(), 0);
      EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), units) << threads << " threads";
    }
  }
}

TEST(Team, MoreUnitsThanTickets) {
  Team team(3);
  constexpr int64_t kUnits = (int64_t{1} << 21) + 7;
  std::vector<uint8_t> visits(kUnits);
  team.run(kUnits, [&](int64_t unit, int) { ++visits[static_cast<size_t>(unit)]; });
  EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), kUnits);
}

TEST(Team, APhaseSeesWhatTheOneBeforeWrote) {
  Team team(4);
  std::vector<int64_t> values(997, 1), sums(997);
  for (int round = 0; round < 200; ++round) {
    team.run(997, [&](int64_t i, int) { values[static_cast<size_t>(i)] += i; });
    team.run(997, [&](int64_t i, int) {
      sums[static_cast<size_t>(i)] += values[static_cast<size_t>(996 - i)];
    });
  }
  for (int64_t i = 0; i < 997; ++i)
    ASSERT_EQ(sums[static_cast<size_t>(i)], 200 + (996 - i) * 200 * 201 / 2);
}

TEST(Team, HelpersTakePart) {
  Team team(4);
  ASSERT_EQ(team.threads(), 4);
  std::vector<int> seats(4);
  EXPECT_TRUE(all_meet(team, [&](int seat) { ++seats[static_cast<size_t>(seat)]; }));
  EXPECT_EQ(seats, std::vector<int>(4, 1));
}

// All helpers are held up, and a second caller is not: no helper has to come before its work is
// done.
TEST(Team, NobodyWaitsForAHelperThatHasNotBegun) {
  std::atomic<bool> release{false};
  std::atomic<int> held{0};
  std::thread other([&] {
    Team team(8);
    team.run(team.threads(), [&](int64_t, int) {
      held.fetch_add(1);
      EXPECT_TRUE(eventually([&] { return release.load(); }));
    });
  });
  EXPECT_TRUE(eventually([&] { return held.load() == 8; }));
  std::atomic<int> done{0};
  {
    Team team(2);
    for (int phase = 0; phase < 100; ++phase) team.run(20, [&](int64_t, int) { ++done; });
  }
  EXPECT_EQ(done.load(), 2000);
  release.store(true);
  other.join();
}

TEST(Team, ManyCallersAndTeamsInsideTeams) {
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&] {
      for (int call = 0; call < 50; ++call) {
        Team team(2 + call % 3);
        for (int phase = 0; phase < 3; ++phase) {
          team.run(10, [&](int64_t, int) {
            Team inner(2);
            inner.run(5, [&](int64_t unit, int) { sum += unit; });
          });
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 8 * 50 * 3 * 10 * 10);
}

// There are 64 slots; the other teams are their callers alone.
TEST(Team, MoreTeamsAtATimeThanSlots) {
  constexpr int kTeams = 80;
  std::barrier all(kTeams);
  std::atomic<int> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kTeams; ++caller) {
    callers.emplace_back([&] {
      Team team(2);
      all.arrive_and_wait();
      team.run(3, [&](int64_t, int) { ++sum; });
      all.arrive_and_wait();
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 3 * kTeams);
}

TEST(Team, HelpersComputeInTheCallersRoundingMode) {
  for (const int mode : {FE_UPWARD, FE_TONEAREST, FE_DOWNWARD}) {
    ASSERT_EQ(fesetround(mode), 0);
    std::vector<int> modes(3, -1);
    bool met = false;
    {
      Team team(3);
      met = team.threads() == 3 &&
            all_meet(team, [&](int seat) { modes[static_cast<size_t>(seat)] = fegetround(); });
    }
    fesetround(FE_TONEAREST);
    EXPECT_TRUE(met);
    EXPECT_EQ(modes, std::vector<int>(3, mode));
  }
}

TEST(Team, SignalsAreForTheProgramsThreads) {
  Team team(2);
  ASSERT_EQ(team.threads(), 2);
  int blocked = -1, own_blocked = -1;
  EXPECT_TRUE(all_meet(team, [&](int seat) {
    sigset_t mask;
    sigemptyset(&mask);
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (seat == 0) return;
    blocked = sigismember(&mask, SIGTERM);
    own_blocked = 0;
    for (const int own : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGSYS})
      own_blocked += sigismember(&mask, own);
  }));
  EXPECT_EQ(blocked, 1);
  // Signals that a thread causes itself: blocked, they would pass the program's handlers by.
  EXPECT_EQ(own_blocked, 0);
}

// States of all threads of this process but the calling one: R runs, S sleeps.
std::string other_threads_states() {
  std::string states;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    std::ifstream file(task.path() / "stat");
    std::string text;
    std::getline(file, text);
    const size_t name_end = text.rfind(')');
    if (name_end != std::string::npos) states += text.at(name_end + 2);
  }
  return states;
}

TEST(Team, IdleHelpersSleep) {
  {
    Team team(4);
    ASSERT_TRUE(all_meet(team));
  }
  EXPECT_TRUE(eventually([] {
    const std::string states = other_threads_states();
    return states.size() >= 3 && states.find_first_not_of('S') == std::string::npos;
  })) << other_threads_states();
}

#define DUALGEMM_SKIP_FORK() \
  if (test::kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer ends a child that starts threads"

// The status that a child of fork() ends with; SIGALRM ends one that hangs.
int in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

bool team_of_three_works() {
  Team team(3);
  return team.threads() == 3 && all_meet(team);
}

TEST(TeamAfterFork, TheChildStartsHelpersOfItsOwn) {
  DUALGEMM_SKIP_FORK();
  ASSERT_TRUE(team_of_three_works());
  EXPECT_EQ(in_child([] {
              return team_of_three_works() && in_child([] { return team_of_three_works(); }) == 0 &&
                     team_of_three_works();
            }),
            0);
  EXPECT_TRUE(team_of_three_works()) << "the parent keeps its own";
}

TEST(TeamAfterFork, WhileOthersCompute) {
  DUALGEMM_SKIP_FORK();
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      while (!stop.load()) {
        Team team(3);
        std::atomic<int> sum{0};
        team.run(50, [&](int64_t, int) { ++sum; });
      }
    });
  }
  for (int round = 0; round < 20; ++round) EXPECT_EQ(in_child(team_of_three_works), 0) << round;
  stop.store(true);
  for (std::thread& caller : callers) caller.join();
}

// Stacks of threads that the child has not inherited are used first; no more are to be had.
TEST(TeamAfterFork, WithoutMemoryForThreadsTheTeamIsSmaller) {
  DUALGEMM_SKIP_FORK();
  if (test::kAddressSanitizer) {
    GTEST_SKIP() << "AddressSanitizer reserves more address space than the limit leaves";
  }
  EXPECT_EQ(in_child([] {
              const rlimit none{1 << 20, 1 << 20};  // less than the process has
              if (setrlimit(RLIMIT_AS, &none) != 0) return false;
              Team team(kMaxTeam);
              std::atomic<int> sum{0};
              team.run(100, [&](int64_t, int) { ++sum; });
              return team.threads() < kMaxTeam && sum.load() == 100;
            }),
            0);
}

}  // namespace
}  // namespace dualgemm::core
