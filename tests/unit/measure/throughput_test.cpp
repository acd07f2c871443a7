// Figures derived from a measured time.
#include "tools/measure/throughput.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace dualgemm::measure {
namespace {

TEST(Throughput, CountsOperationsAndBytes) {
  Problem problem;
  problem.m = 2;
  problem.n = 32;
  problem.k = 64;
  const auto rate = throughput(problem, 1e-6, {2.0, 1.0});
  ASSERT_TRUE(rate.ok());
  const double operations = 4.0 * 2 * 32 * 64;
  const double bytes = 2 * (32 + 4) + 2 * 32 * (32 + 4) + 2 * 32 * 2;
  EXPECT_DOUBLE_EQ(rate->gops, operations * 1e-3);
  EXPECT_DOUBLE_EQ(rate->gbps, bytes * 1e-3);
  EXPECT_DOUBLE_EQ(rate->roofline_seconds, operations / 2.0 * 1e-9);
  EXPECT_DOUBLE_EQ(throughput(problem, 1e-6, {1e9, 1.0})->roofline_seconds, bytes * 1e-9);
  EXPECT_EQ(throughput(problem, 1e-6, {})->roofline_share, 0.0);
  problem.k = 17;
  EXPECT_FALSE(throughput(problem, 1.0, {}).ok());
}

TEST(Throughput, GeometricMean) {
  EXPECT_DOUBLE_EQ(geometric_mean({2.0, 8.0}), 4.0);
  EXPECT_DOUBLE_EQ(geometric_mean({5.0}), 5.0);
  EXPECT_EQ(geometric_mean({}), 0.0);
}

}  // namespace
}  // namespace dualgemm::measure
