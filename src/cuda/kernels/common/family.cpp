#include "cuda/kernels/common/family.hpp"

#include <fmt/format.h>

namespace dualgemm::cuda {

Expected<int64_t> most_ctas(const PlanConstraints& constraints, const DeviceCaps& caps,
                            int64_t ctas_of_sm) {
  const int64_t most = caps.num_sms * ctas_of_sm;
  if (!constraints.demands_ctas()) return most;
  if (constraints.ctas >= 1 && constraints.ctas <= most) return constraints.ctas;
  return Status::invalid(
      "config", fmt::format("ctas={}", constraints.ctas),
      ctas_of_sm == 1
          ? fmt::format("must be 1 .. {}, as this GPU has SMs", most)
          : fmt::format("must be 1 .. {}, {} for each SM of this GPU", most, ctas_of_sm));
}

Status check_pairs(const char* argument, const std::string& observed, const DeviceCaps& caps) {
  if (caps.max_pairs != 0) return {};
  return Status::unsupported(argument, observed,
                             caps.name + " runs no cluster of two CTAs with an SM for each");
}

}  // namespace dualgemm::cuda
