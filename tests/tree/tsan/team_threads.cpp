// What the ThreadSanitizer job is worth: with "race" it must report one, without it must stay
// silent although the threads of a team share data from phase to phase, under no other lock.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "core/team.hpp"

int main(int argc, char** argv) {
  const bool race = argc > 1 && std::strcmp(argv[1], "race") == 0;
  dualgemm::core::Team team(4);
  const auto size = static_cast<size_t>(team.threads());
  std::vector<long> values(size, 1), sums(size);
  long shared = 0;
  for (int round = 0; round < 20; ++round) {
    // All threads are here at once. Relaxed, so that their meeting orders nothing between them.
    std::atomic<int> here{0};
    team.run(team.threads(), [&](int64_t i, int) {
      here.fetch_add(1, std::memory_order_relaxed);
      while (here.load(std::memory_order_relaxed) < team.threads()) std::this_thread::yield();
      values[static_cast<size_t>(i)] += i;
      if (race) shared += i;
    });
    team.run(team.threads(), [&](int64_t i, int) {
      sums[static_cast<size_t>(i)] += values[size - 1 - static_cast<size_t>(i)];
    });
  }
  long sum = shared;
  for (const long one : sums) sum += one;
  std::printf("%d threads, sum %ld\n", team.threads(), sum);
  return team.threads() > 1 ? 0 : 1;
}
