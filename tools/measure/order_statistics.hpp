// Middles of measured values, and how far the true ones may lie from them. Nothing is assumed of
// the noise but that the values are independent of each other.
#pragma once

#include <vector>

namespace dualgemm::measure {

// Interpolated between neighbours. Precondition: `sorted` ascends and is not empty.
double quantile(const std::vector<double>& sorted, double q) noexcept;

// What an interval is to hold in so many cases of a hundred.
inline constexpr double kConfidence = 0.95;

struct Interval {
  double low = 0, high = 0;
  double confidence = 0;  // that the true value lies in it, at the least; 0: nothing is known

  bool known() const noexcept { return confidence > 0; }
};

// The interval from the k-th smallest to the k-th largest value holds the median of what the values
// are drawn from unless fewer than k of them fall on one side of it, which a fair coin's binomial
// distribution gives the chance of. The narrowest such interval with at least kConfidence; below
// six values no one has that, and the interval is from the smallest to the largest, with a
// confidence of 1 - 2^(1 - n): 0.5 of two values, 0.75 of three, none of one. Values drawn from
// several distributions make it no less sure for the median of their mixture (Hoeffding 1956: a sum
// of unequal coins has a narrower distribution than one of equal coins).
Interval median_interval(std::vector<double> values);

struct Estimate {
  double value = 0;  // the median; 0: no value
  Interval interval;
};
Estimate estimate(const std::vector<double>& values);

}  // namespace dualgemm::measure
