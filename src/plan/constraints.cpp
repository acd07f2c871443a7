#include "plan/strategy.hpp"

namespace dualgemm {
namespace {

bool allows(int64_t wanted, int64_t value) noexcept {
  return wanted == PlanConstraints::kAny || wanted == value;
}

}  // namespace

bool satisfies_tile_constraints(KernelId kernel, const KernelShape& shape,
                                const PlanConstraints& constraints) noexcept {
  return constraints.kernel.contains(kernel) && allows(constraints.tile_m, shape.tile_m) &&
         allows(constraints.tile_n, shape.tile_n) && allows(constraints.tile_k, shape.tile_k) &&
         allows(constraints.stages, shape.stages) &&
         allows(constraints.k_warpgroups, shape.k_warpgroups);
}

bool satisfies(KernelId kernel, const KernelShape& shape,
               const PlanConstraints& constraints) noexcept {
  const bool fits_grid =
      !constraints.demands_ctas() || (shape.ctas > 0 && shape.ctas <= constraints.ctas);
  return fits_grid && satisfies_tile_constraints(kernel, shape, constraints);
}

}  // namespace dualgemm
