#include "cuda/strategies/kernel_choice.hpp"

#include <fmt/format.h>

#include <string>

#include "plan/config_text.hpp"

namespace dualgemm::cuda {
namespace {

bool satisfies(const KernelNumbers& kernel, const PlanConstraints& constraints) {
  return PlanConstraints::allows(constraints.tile_m, kernel.tile_m) &&
         PlanConstraints::allows(constraints.tile_n, kernel.tile_n) &&
         PlanConstraints::allows(constraints.tile_k, kernel.tile_k) &&
         PlanConstraints::allows(constraints.stages, kernel.stages) &&
         PlanConstraints::allows(constraints.k_warpgroups, kernel.k_warpgroups);
}

// As Plan::config() spells it, with the k_warpgroups that belong to it.
std::string name_of_kernel(const KernelNumbers& kernel) {
  std::string name = kernel.k_warpgroups > 0 ? fmt::format("w{}_", kernel.k_warpgroups) : "";
  return name +
         fmt::format("t{}x{}x{}_s{}", kernel.tile_m, kernel.tile_n, kernel.tile_k, kernel.stages);
}

}  // namespace

Expected<KernelNumbers> choose_kernel(std::span<const KernelNumbers> compiled,
                                      const KernelNumbers& usual,
                                      const PlanConstraints& constraints) {
  if (satisfies(usual, constraints)) return usual;
  std::string names;
  for (const KernelNumbers& kernel : compiled) {
    if (satisfies(kernel, constraints)) return kernel;
    names += (names.empty() ? "" : ", ") + name_of_kernel(kernel);
  }
  return Status::unsupported("config", plan::text_of(constraints),
                             "no such kernel is compiled for this problem; there are " + names);
}

void fill_in(Plan& plan, const KernelNumbers& kernel) {
  plan.tile_m = kernel.tile_m;
  plan.tile_n = kernel.tile_n;
  plan.tile_k = kernel.tile_k;
  plan.stages = kernel.stages;
  plan.k_warpgroups = kernel.k_warpgroups;
}

}  // namespace dualgemm::cuda
