// Kernels of pairs of CTAs: whether the GPU runs any, and how many at once.
#include <algorithm>

#include "cuda/cutlass/params.hpp"
#include "cuda/kernels/sm100a_pair/config.hpp"
#include "cuda/kernels/sm100a_pair/occupancy.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/strategies/strategies.hpp"

namespace dualgemm::cuda {

Expected<DeviceCaps> current_gpu_caps() {
  Expected<DeviceCaps> caps = detect_device_caps();
  if (!caps) return caps;
  const auto& isas = caps->isas;
  if (std::find(isas.begin(), isas.end(), Isa::kSm100a) == isas.end()) return caps;
  if (const Expected<int> pairs = sm100a_pair::count_pairs()) caps->max_pairs = *pairs;
  return caps;
}

bool is_pair_kernel(const std::string& kernel) {
  return kernel == sm100a_pair::kKernelName || kernel == sm100a_pair::kPersistentName;
}

Status check_pairs(const char* argument, const std::string& observed, const DeviceCaps& caps) {
  if (caps.max_pairs != 0) return {};
  return Status::unsupported(argument, observed,
                             caps.name + " runs no cluster of two CTAs with an SM for each");
}

Status check_schedulable(const Plan& plan, const DeviceCaps& caps) {
  const bool cutlass_pair =
      plan.strategy == StrategyId::kCutlass && plan.shape.tile_m > gated::kHalfTile;
  if (!cutlass_pair && !is_pair_kernel(plan.kernel)) return {};
  return check_pairs("plan.kernel", plan.kernel, caps);
}

}  // namespace dualgemm::cuda
