// The sm_90a kernel for few rows as a row of the suite.
#include "kernels/sm90a_skinny/simulated_run.hpp"
#include "kernels/suite/kernel.hpp"

namespace dualgemm::test {
namespace {

::testing::AssertionResult simulate_setting(RandomCase& data, Setting& setting) {
  SimulatedRun run{.cols = setting.tile_n,
                   .prepared = setting.prepared,
                   .misalign_a_scales = setting.misalign_a_scales};
  if (setting.max_ctas != 0) run.max_ctas = setting.max_ctas;
  return simulate(data, run);
}

}  // namespace

const KernelRow& kernel_row() {
  static const KernelRow row{.cases = DUALGEMM_CASES,
                             .accumulation = reference::Accumulation::kAnyOrder,
                             .simulate = simulate_setting};
  return row;
}

}  // namespace dualgemm::test
