// D of a case, as numbers and as bits: as a simulated kernel leaves it, and as the oracle does.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/simulation/simulation.hpp"
#include "reference/dual_gemm.hpp"
#include "support/hand_made.hpp"

namespace dualgemm::test {

// D as fp32, batches one below the other.
inline std::vector<float> result_of(const RandomCase& data) {
  std::vector<float> values;
  const Problem& p = data.problem;
  for (int64_t l = 0; l < p.l; ++l) {
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t col = 0; col < p.n; ++col) {
        const int64_t index = l * data.resolved.d.batch_stride + row * data.resolved.d.ld + col;
        values.push_back(load_element(data.d.data.data(), p.d.type, index));
      }
    }
  }
  return values;
}

// By the simulate() of a kernel's tests.
template <class Run>
std::vector<float> simulated(RandomCase& data, Run run) {
  data.poison_d();
  EXPECT_TRUE(simulate(data, run));
  return result_of(data);
}

inline std::vector<uint8_t> bits_of(const RandomCase& data) {
  return {data.d.data.begin(), data.d.data.end()};
}

template <class Run>
std::vector<uint8_t> simulated_bits(RandomCase& data, Run run) {
  data.poison_d();
  EXPECT_TRUE(simulate(data, run));
  return bits_of(data);
}

// The numbers that were written out by hand.
template <class Run>
::testing::AssertionResult is_exact(HandMade made, Run run) {
  made.data.poison_d();
  if (auto result = simulate(made.data, run); !result) return result;
  return made.is(bits_of(made.data));
}

inline std::vector<float> expected(RandomCase& data) {
  data.poison_d();
  EXPECT_TRUE(reference::dual_gemm(data.problem, data.buffers()).ok());
  return result_of(data);
}

}  // namespace dualgemm::test
