// The sm_90a kernels as a row of the suite.
#include "kernels/sm90a/simulated_run.hpp"
#include "kernels/suite/kernel.hpp"

namespace dualgemm::test {
namespace {

::testing::AssertionResult simulate_setting(RandomCase& data, Setting& setting) {
  SimulatedRun run{
      .tile_m = setting.tile_m, .prepared = setting.prepared, .misalign = setting.misalign};
  if (setting.tile_n != 0) run.tile_n = setting.tile_n;
  if (setting.split != 0) run.k_warpgroups = setting.split;
  if (setting.max_ctas != 0) run.max_ctas = setting.max_ctas;
  ::testing::AssertionResult result = simulate(data, run);
  setting.shares_tiles = run.shares_tiles;
  setting.pairs_ctas = run.pairs_ctas;
  return result;
}

}  // namespace

const KernelRow& kernel_row() {
  static const KernelRow row{.cases = DUALGEMM_CASES,
                             .accumulation = reference::Accumulation::kAnyOrder,
                             .simulate = simulate_setting};
  return row;
}

}  // namespace dualgemm::test
