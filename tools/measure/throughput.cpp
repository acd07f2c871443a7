#include "tools/measure/throughput.hpp"

#include <algorithm>
#include <cmath>

#include "core/problem.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::measure {

Expected<Throughput> throughput(const Problem& problem, double seconds,
                                const MachineLimits& limits) {
  const Expected<OperandSizes> sizes = operand_sizes(problem);
  if (!sizes) return sizes.status();
  const double operations = core::flops(problem);
  const double bytes = static_cast<double>(sizes->a) + static_cast<double>(sizes->a_scales) +
                       static_cast<double>(sizes->gate) + static_cast<double>(sizes->gate_scales) +
                       static_cast<double>(sizes->up) + static_cast<double>(sizes->up_scales) +
                       static_cast<double>(sizes->bias_gate) + static_cast<double>(sizes->bias_up) +
                       static_cast<double>(sizes->d) + static_cast<double>(sizes->d_scales);
  Throughput result;
  result.gops = operations / seconds * 1e-9;
  result.gbps = bytes / seconds * 1e-9;
  if (limits.gops > 0.0 && limits.gbps > 0.0) {
    result.roofline_seconds = std::max(operations / limits.gops, bytes / limits.gbps) * 1e-9;
    result.roofline_share = result.roofline_seconds / seconds;
  }
  return result;
}

double geometric_mean(const std::vector<double>& values) noexcept {
  if (values.empty()) return 0.0;
  double sum = 0.0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace dualgemm::measure
