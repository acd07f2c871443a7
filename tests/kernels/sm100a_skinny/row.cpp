// The sm_100a kernel for few rows as a row of the suite.
#include "cuda/kernels/sm100a/launch.hpp"
#include "kernels/sm100a_skinny/simulated_run.hpp"
#include "kernels/suite/kernel.hpp"

namespace dualgemm::test {
namespace {

// By the kernel of 128 rows, whose MMA has the operands the other way around.
::testing::AssertionResult simulate_many_rows(RandomCase& data) {
  namespace sm100a = cuda::sm100a;
  Simulation simulation(data, 0);
  const auto launches = sm100a::build_launches(data.resolved, simulation.buffers(), {}, nullptr,
                                               *sm100a::find_instance(64, data.problem.d.type),
                                               simulated_encode_tiled());
  if (!launches) return ::testing::AssertionFailure() << launches.status().message();
  for (const cuda::KernelLaunch& launch : *launches) {
    if (auto result = simulation.run(launch, {}); !result) return result;
  }
  simulation.download_d(data);
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult simulate_setting(RandomCase& data, Setting& setting) {
  if (setting.other_kernel) return simulate_many_rows(data);
  SkinnyRun run{
      .tile_m = setting.tile_m, .misalign = setting.misalign, .prepared = setting.prepared};
  if (setting.tile_n != 0) run.tile_n = setting.tile_n;
  if (setting.max_ctas != 0) run.max_ctas = setting.max_ctas;
  return simulate(data, run);
}

std::vector<std::map<std::string, int64_t>> tiles() {
  std::vector<std::map<std::string, int64_t>> list;
  for (const auto& instance : cuda::sm100a_skinny::instances())
    list.push_back({{"tile_m", instance.config.tile_m},
                    {"tile_n", instance.config.tile_n},
                    {"stages", instance.stages}});
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
