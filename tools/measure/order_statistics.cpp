#include "tools/measure/order_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace dualgemm::measure {
namespace {

// The chance of exactly `heads` heads of n fair coins.
double binomial(double n, double heads) noexcept {
  return std::exp(std::lgamma(n + 1) - std::lgamma(heads + 1) - std::lgamma(n - heads + 1) -
                  n * std::log(2.0));
}

}  // namespace

double quantile(const std::vector<double>& sorted, double q) noexcept {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Interval median_interval(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const auto count = static_cast<double>(n);
  size_t left_out = 0;                            // on either side
  double tail = binomial(count, 0), next = tail;  // the chance of no more than left_out values
  while (2 * (left_out + 1) < n) {
    next += binomial(count, static_cast<double>(left_out + 1));
    if (1 - 2 * next < kConfidence) break;
    tail = next;
    ++left_out;
  }
  return {values[left_out], values[n - 1 - left_out], std::max(0.0, 1 - 2 * tail)};
}

Estimate estimate(const std::vector<double>& values) {
  if (values.empty()) return {};
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  return {quantile(sorted, 0.5), median_interval(std::move(sorted))};
}

}  // namespace dualgemm::measure
