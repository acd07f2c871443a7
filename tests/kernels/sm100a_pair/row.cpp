// The kernel of a pair of CTAs as a row of the suite.
#include "kernels/sm100a_pair/simulated_run.hpp"
#include "kernels/suite/kernel.hpp"

namespace dualgemm::test {
namespace {

::testing::AssertionResult simulate_setting(RandomCase& data, Setting& setting) {
  SimulatedRun run{.misalign = setting.misalign,
                   .one_cta = setting.other_kernel,
                   .prepared = setting.prepared,
                   .persistent_ctas = setting.max_ctas};
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
