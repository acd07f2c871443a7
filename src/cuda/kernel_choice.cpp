#include "cuda/kernel_choice.hpp"

#include <fmt/format.h>

#include <string>

#include "plan/config_text.hpp"

namespace dualgemm::cuda {
namespace {

// As Plan::config() spells it.
std::string text_of_kernel(const KernelChoice& choice) {
  const KernelShape& shape = choice.shape;
  std::string name = plan::kernel_name(choice.kernel);
  if (shape.k_warpgroups > 0) name += fmt::format("_w{}", shape.k_warpgroups);
  name += fmt::format("_t{}x{}x{}", shape.tile_m, shape.tile_n, shape.tile_k);
  if (shape.stages > 0) name += fmt::format("_s{}", shape.stages);
  return name;
}

}  // namespace

Expected<KernelChoice> choose_kernel(std::span<const KernelChoice> compiled,
                                     const KernelChoice& usual,
                                     const PlanConstraints& constraints) {
  if (satisfies_tile_constraints(usual.kernel, usual.shape, constraints)) return usual;
  std::string names;
  for (const KernelChoice& kernel : compiled) {
    if (satisfies_tile_constraints(kernel.kernel, kernel.shape, constraints)) return kernel;
    names += (names.empty() ? "" : ", ") + text_of_kernel(kernel);
  }
  return Status::unsupported("config", plan::text_of(constraints),
                             "no such kernel is compiled for this problem; there are " + names);
}

void fill_in(Plan& plan, const KernelChoice& choice) {
  plan::set_kernel(plan, choice.kernel);
  plan.shape = choice.shape;
}

}  // namespace dualgemm::cuda
