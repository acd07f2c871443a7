// The grid may begin while the one before it still runs (programmatic dependent launch). Every run
// of these tests says so (Simulation::let_previous_grid_own_everything()); this one, that a kernel
// that did not wait would be found out.
#include "kernels/simulation/overlap.hpp"
#include "kernels/sm100a_w4a16/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm100aW4a16Overlap, NothingIsReadOrWrittenBeforeTheGridBeforeHasEnded) {
  Problem p = with_rows({.m = 5, .n = 70, .k = 320}, DataType::kBF16);
  p.bias = BiasType::kF32;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  const W4a16Run run{.split = 2};
  const Waits waits("dual_gemm_sm100a_w4a16", instance_of(p, run).entry);
  // Waits of both threads that load, and of the epilogue.
  expect_reported_without_wait(data, run, waits,
                               {{"cp.async.bulk.tensor.3d", "loads of operands"},
                                {"cp.async.bulk.tensor.4d", "loads of scales"},
                                {"st.global", "D"},
                                {"ld.global", "biases"}},
                               3);
}

// Prepared weights are read before it, and are not the grid's before (simulate() says so): then A
// has a thread of its own.
TEST(Sm100aW4a16Overlap, EveryWaitIsNeeded) {
  Problem p = with_rows({.m = 5, .n = 70, .k = 320}, DataType::kF16);
  p.bias = BiasType::kF32;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  const Waits waits("dual_gemm_sm100a_w4a16", instance_of(p, {}).entry);
  for (size_t i = 0; i < waits.count(); ++i) {
    size_t reported = 0;
    for (const bool prepared : {false, true}) {
      W4a16Run run{.prepared = prepared};
      run.mutant = waits.without(i);
      if (simulate(data, run)) continue;
      ++reported;
      for (const ptxsim::Report& report : run.result.reports.list) EXPECT_EQ(report.rule, 21);
    }
    EXPECT_GE(reported, 1u) << "wait " << i;
  }
}

}  // namespace
}  // namespace dualgemm::test
