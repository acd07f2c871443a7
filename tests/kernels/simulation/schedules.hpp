// The same bits in every schedule: asynchronous operations complete at once, as late as they may,
// or at random.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "kernels/simulation/simulation.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {

template <class Run>
using LookAt = std::type_identity_t<std::function<void(Run&)>>;

// Runs `fixed` by the simulate() of a kernel's tests: eagerly, whose D must be within the bound,
// then with `seeds` seeds of the lazy and of the random schedule each, which must leave the same D.
// `check` looks at what every run filled in; `vary`, if there is one, changes it before, by its
// seed.
template <class Run>
void expect_same_bits_in_schedules(RandomCase& data, const Run& fixed, uint64_t seeds,
                                   reference::Accumulation accumulation,
                                   const LookAt<const Run>& check = nullptr,
                                   const LookAt<Run>& vary = nullptr) {
  using ptxsim::Schedule;
  std::vector<uint8_t> bits, scales;
  for (const Schedule schedule : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
    const bool first = schedule == Schedule::kEager;
    for (uint64_t seed = 1; seed <= (first ? 1 : seeds); ++seed) {
      Run run = fixed;
      run.options.schedule = schedule;
      run.options.seed = seed;
      if (vary) vary(run);
      SCOPED_TRACE(describe(run.options));
      data.poison_d();
      ASSERT_TRUE(simulate(data, run));
      if (check) check(run);
      if (first) {
        ASSERT_TRUE(within_bound(data.problem, data.buffers(), accumulation));
        bits.assign(data.d.data.begin(), data.d.data.end());
        scales.assign(data.d.scales.begin(), data.d.scales.end());
      }
      ASSERT_TRUE(std::equal(bits.begin(), bits.end(), data.d.data.begin()));
      ASSERT_TRUE(std::equal(scales.begin(), scales.end(), data.d.scales.begin()));
    }
  }
}

}  // namespace dualgemm::test
