#include "cuda/kernels/common/family.hpp"

#include <fmt/format.h>

namespace dualgemm::cuda {

Expected<int64_t> most_ctas(const PlanConstraints& constraints, const DeviceCaps& caps) {
  if (constraints.ctas == PlanConstraints::kAny) return caps.num_sms;
  if (constraints.ctas >= 1 && constraints.ctas <= caps.num_sms) return constraints.ctas;
  return Status::invalid("config", fmt::format("ctas={}", constraints.ctas),
                         fmt::format("must be 1 .. {}, as this GPU has SMs", caps.num_sms));
}

Status check_pairs(const char* argument, const std::string& observed, const DeviceCaps& caps) {
  if (caps.max_pairs != 0) return {};
  return Status::unsupported(argument, observed,
                             caps.name + " runs no cluster of two CTAs with an SM for each");
}

}  // namespace dualgemm::cuda
