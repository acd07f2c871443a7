#include "cuda/strategies/kernel_choice.hpp"

#include <fmt/format.h>

#include <string>

#include "plan/config_text.hpp"

namespace dualgemm::cuda {
namespace {

bool grants(const KernelNumbers& kernel, const PlanWishes& wishes) {
  return PlanWishes::allows(wishes.tile_m, kernel.tile_m) &&
         PlanWishes::allows(wishes.tile_n, kernel.tile_n) &&
         PlanWishes::allows(wishes.slab_k, kernel.slab_k) &&
         PlanWishes::allows(wishes.stages, kernel.stages) &&
         PlanWishes::allows(wishes.phases, kernel.phases);
}

// As Plan::config() spells it, with the phases that belong to it.
std::string name_of_kernel(const KernelNumbers& kernel) {
  std::string name = kernel.phases > 0 ? fmt::format("p{}_", kernel.phases) : "";
  return name +
         fmt::format("t{}x{}x{}_s{}", kernel.tile_m, kernel.tile_n, kernel.slab_k, kernel.stages);
}

}  // namespace

Expected<KernelNumbers> choose_kernel(std::span<const KernelNumbers> compiled,
                                      const KernelNumbers& usual, const PlanWishes& wishes) {
  if (grants(usual, wishes)) return usual;
  std::string names;
  for (const KernelNumbers& kernel : compiled) {
    if (grants(kernel, wishes)) return kernel;
    names += (names.empty() ? "" : ", ") + name_of_kernel(kernel);
  }
  return Status::unsupported("config", plan::text_of(wishes),
                             "no such kernel is compiled for this problem; there are " + names);
}

void fill_in(Plan& plan, const KernelNumbers& kernel) {
  plan.tile_m = kernel.tile_m;
  plan.tile_n = kernel.tile_n;
  plan.slab_k = kernel.slab_k;
  plan.stages = kernel.stages;
  plan.phases = kernel.phases;
}

}  // namespace dualgemm::cuda
