// The sm_80 kernel, by the passes of all its strategies, as a row of the suite.
#include "kernels/sm80/simulated_run.hpp"
#include "kernels/suite/kernel.hpp"

namespace dualgemm::test {
namespace {

::testing::AssertionResult simulate_setting(RandomCase& data, Setting& setting) {
  namespace sm80 = cuda::sm80;
  SimulatedRun run{.tile_m = setting.tile_m,
                   .k_parts = setting.split,
                   .ctas = setting.max_ctas,
                   .misalign = setting.misalign,
                   .passes = kPasses[setting.passes],
                   .prepared = setting.prepared};
  if (setting.seed != 0)
    run.options = {.schedule = ptxsim::Schedule::kRandom, .seed = setting.seed, .strict = true};
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
