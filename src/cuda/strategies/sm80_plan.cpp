#include "cuda/strategies/sm80_plan.hpp"

#include <fmt/format.h>

#include <vector>

#include "cuda/strategies/kernel_choice.hpp"

namespace dualgemm::cuda {
namespace {

KernelChoice choice_of(const sm80::Config& config) {
  return {.kernel = sm80::kKernelName,
          .shape = {
              .tile_m = config.tile_m, .tile_n = sm80::tile_n_of(config), .tile_k = sm80::kTileK}};
}

}  // namespace

Status plan_sm80(Plan& plan, sm80::Pass pass, const PlanConstraints& constraints) {
  const sm80::Config& usual = sm80::choose_instance(plan.problem, pass).config;
  std::vector<KernelChoice> compiled;
  for (const sm80::Instance& instance : sm80::instances()) {
    if (sm80::is_for(instance.config, plan.problem, pass))
      compiled.push_back(choice_of(instance.config));
  }
  const Expected<KernelChoice> kernel = choose_kernel(compiled, choice_of(usual), constraints);
  if (!kernel) return kernel.status();
  fill_in(plan, *kernel);
  return {};
}

Expected<const sm80::Instance*> find_sm80(const Plan& plan, sm80::Pass pass) {
  const sm80::Instance* instance =
      sm80::find_instance(plan.problem, plan.shape.tile_m, plan.shape.tile_n, pass);
  if (plan.shape.tile_n > 0 && instance != nullptr) return instance;
  return Status::unsupported("plan",
                             fmt::format("tile {} x {}", plan.shape.tile_m, plan.shape.tile_n),
                             "must be one of the compiled kernels");
}

}  // namespace dualgemm::cuda
