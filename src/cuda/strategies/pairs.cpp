// Kernels of pairs of CTAs: whether the GPU runs any, and how many at once.
#include <algorithm>

#include "cuda/cutlass/params.hpp"
#include "cuda/families.hpp"
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

Status check_schedulable(const Plan& plan, const DeviceCaps& caps) {
  const bool cutlass_pair =
      plan.strategy == StrategyId::kCutlass && plan.shape.tile_m > gated::kHalfTile;
  const KernelFamily* const family = find_family(plan.kernel_id, plan.isa);
  if (!cutlass_pair && (family == nullptr || !family->pairs)) return {};
  return check_pairs("plan.kernel", plan.kernel, caps);
}

}  // namespace dualgemm::cuda
