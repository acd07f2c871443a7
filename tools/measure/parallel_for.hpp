// Loops of the tools on the library's own threads: those that a call has by default, within
// affinity, quota and DUALGEMM_NUM_THREADS. (OpenMP's runtime has a word of its own to say about
// OMP_NUM_THREADS, before it is asked.)
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/int_math.hpp"
#include "core/team.hpp"
#include "core/usable_cores.hpp"

namespace dualgemm::measure {

// One where a variable is wrong: the command has refused it before.
inline int threads_or_default(int threads) {
  if (threads > 0) return threads;
  const Expected<int> usual = core::default_threads();
  return usual ? *usual : 1;
}

// body(index, seat) for each index of 0 .. count - 1; seats are 0 .. team.threads() - 1, each held
// by one thread at a time.
template <class Body>
void parallel_for(core::Team& team, int64_t count, const Body& body) {
  constexpr int64_t kRunsOfThread = 16;  // so many that a slower thread may take fewer
  const int64_t run = std::max<int64_t>(1, core::ceil_div(count, kRunsOfThread * team.threads()));
  team.run(core::ceil_div(count, run), [&](int64_t unit, int seat) {
    const int64_t end = std::min(count, (unit + 1) * run);
    for (int64_t index = unit * run; index < end; ++index) body(index, seat);
  });
}

// The same without seats, by a team of its own. threads 0: the default.
template <class Body>
void parallel_for(int64_t count, const Body& body, int threads = 0) {
  core::Team team(threads_or_default(threads));
  parallel_for(team, count, [&](int64_t index, int) { body(index); });
}

}  // namespace dualgemm::measure
