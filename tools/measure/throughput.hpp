// Figures derived from a measured time.
#pragma once

#include <cstdint>
#include <vector>

#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::measure {

// What the machine can do at best, measured; 0 = unknown.
struct MachineLimits {
  double gops = 0.0;  // 10^9 operations a second in the arithmetic that the plan uses
  double gbps = 0.0;  // 10^9 bytes a second from memory
};

struct Throughput {
  double gops = 0.0;  // 4*m*n*k*l / time
  double gbps = 0.0;  // every operand once and D once / time
  double roofline_seconds =
      0;  // the larger of the arithmetic and the bandwidth limit; 0 = a limit is unknown
  double roofline_share = 0.0;  // roofline_seconds / time
};

// Grouping::kNone or kMasked with all rows. Precondition: seconds > 0.
Expected<Throughput> throughput(const Problem& problem, double seconds,
                                const MachineLimits& limits);

// exp of the mean of the logarithms; 0 for an empty list. Precondition: all values > 0.
double geometric_mean(const std::vector<double>& values) noexcept;

}  // namespace dualgemm::measure
