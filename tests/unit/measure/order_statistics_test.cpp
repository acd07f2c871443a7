// Intervals against the binomial distribution computed by hand, and their coverage by simulation.
#include "tools/measure/order_statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace dualgemm::measure {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values;
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

// Confidence 1 - 2 * (sum of the first k binomial coefficients of n) / 2^n.
TEST(MedianInterval, EndsAreOrderStatistics) {
  struct Known {
    int n;
    double low, high, confidence;
  };
  for (const Known& known :
       {Known{1, 1, 1, 0}, Known{2, 1, 2, 0.5}, Known{3, 1, 3, 0.75}, Known{5, 1, 5, 0.9375},
        Known{6, 1, 6, 1 - 2.0 / 64}, Known{8, 1, 8, 1 - 2.0 / 256}, Known{9, 2, 8, 1 - 20.0 / 512},
        Known{12, 3, 10, 1 - 2.0 * (1 + 12 + 66) / 4096}}) {
    SCOPED_TRACE(known.n);
    const Interval interval = median_interval(one_to(known.n));
    EXPECT_EQ(interval.low, known.low);
    EXPECT_EQ(interval.high, known.high);
    EXPECT_NEAR(interval.confidence, known.confidence, 1e-12);
    EXPECT_EQ(interval.known(), known.n > 1);
  }
  EXPECT_FALSE(median_interval({}).known());
}

// 1.96 * sqrt(n) / 2 places from the middle, also where 2^-n is no number.
TEST(MedianInterval, ManyValues) {
  for (const int n : {1000, 5000}) {
    const Interval interval = median_interval(one_to(n));
    EXPECT_NEAR(interval.low, n / 2.0 - 0.98 * std::sqrt(n), 2);
    EXPECT_NEAR(interval.low + interval.high, n + 1, 1e-9);
    EXPECT_GE(interval.confidence, kConfidence);
    EXPECT_LT(interval.confidence, 0.96);
  }
}

// Values with a long tail, and halves from two distributions that lie apart: the true median
// is in at least as many intervals as their confidence says.
TEST(MedianInterval, HoldsTheMedianAsOftenAsItSays) {
  std::mt19937_64 random(7);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  constexpr int kTimes = 20000;
  for (const int n : {2, 3, 6, 9, 24}) {
    for (const bool mixture : {false, true}) {
      SCOPED_TRACE(n);
      if (mixture && n % 2 == 1) continue;
      // exp(-ln u) has the median 2; uniform in [0, 1) and in [1, 2): any 1 is a median.
      const double truth = mixture ? 1.0 : 2.0;
      int held = 0;
      double confidence = 0;
      for (int i = 0; i < kTimes; ++i) {
        std::vector<double> values;
        for (int j = 0; j < n; ++j) values.push_back(mixture ? uniform() + j % 2 : 1 / uniform());
        const Interval interval = median_interval(values);
        held += interval.low <= truth && truth <= interval.high;
        confidence = interval.confidence;
      }
      const double share = static_cast<double>(held) / kTimes;
      EXPECT_GT(share, confidence - 0.01);
      // For one distribution the interval is as narrow as the confidence allows.
      EXPECT_LT(share, mixture ? 1.1 : confidence + 0.01);
    }
  }
}

TEST(Estimate, IsTheMedianWithItsInterval) {
  EXPECT_EQ(estimate({}).value, 0);
  EXPECT_EQ(estimate({3, 1}).value, 2);
  EXPECT_EQ(estimate({3, 1, 2}).value, 2);
  EXPECT_EQ(estimate({3, 1, 2}).interval.high, 3);
}

}  // namespace
}  // namespace dualgemm::measure
