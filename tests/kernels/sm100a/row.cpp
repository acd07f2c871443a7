// The sm_100a kernel of one CTA a tile as a row of the suite.
#include "kernels/sm100a/simulated_run.hpp"
#include "kernels/suite/kernel.hpp"

namespace dualgemm::test {
namespace {

::testing::AssertionResult simulate_setting(RandomCase& data, Setting& setting) {
  SimulatedRun run{.misalign = setting.misalign};
  if (setting.tile_n != 0) run.tile_n = setting.tile_n;
  return simulate(data, run);
}

}  // namespace

const KernelRow& kernel_row() {
  static const KernelRow row{.cases = DUALGEMM_CASES,
                             .accumulation = reference::Accumulation::kTensorCoreStep,
                             .simulate = simulate_setting};
  return row;
}

}  // namespace dualgemm::test
