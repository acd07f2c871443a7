// The sm_120a kernel as a row of the suite.
#include "kernels/sm120a/simulated_run.hpp"
#include "kernels/suite/kernel.hpp"

namespace dualgemm::test {
namespace {

::testing::AssertionResult simulate_setting(RandomCase& data, Setting& setting) {
  SimulatedRun run{.tile_m = setting.tile_m,
                   .stages = setting.split,
                   .misalign = setting.misalign,
                   .prepared = setting.prepared};
  if (setting.max_ctas != 0) run.max_ctas = setting.max_ctas;
  run.options.strict = true;
  if (setting.seed != 0)
    run.options = {.schedule = ptxsim::Schedule::kRandom, .seed = setting.seed, .strict = true};
  return simulate(data, run);
}

std::vector<std::map<std::string, int64_t>> tiles() {
  std::vector<std::map<std::string, int64_t>> list;
  for (const auto& instance : cuda::sm120a::instances())
    list.push_back({{"tile_m", cuda::sm120a::tile_m_of(instance.config)}});
  return list;
}

}  // namespace

const KernelRow& kernel_row() {
  static const KernelRow row{.cases = DUALGEMM_CASES,
                             .accumulation = reference::Accumulation::kTensorCoreStep,
                             .simulate = simulate_setting,
                             .instances = tiles};
  return row;
}

}  // namespace dualgemm::test
