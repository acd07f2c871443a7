// The grid may begin while the one before it still runs (programmatic dependent launch). Every run
// of these tests says so (Simulation::let_previous_grid_own_everything()); this one, that a kernel
// that did not wait would be found out.
#include "kernels/simulation/overlap.hpp"
#include "kernels/sm100a_skinny/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm100aSkinnyOverlap, NothingIsReadOrWrittenBeforeTheGridBeforeHasEnded) {
  Problem p = swizzled({.m = 5, .n = 70, .k = 320});
  p.bias = BiasType::kF32;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  const SkinnyRun run{};
  const Waits waits("dual_gemm_sm100a_skinny", instance_of(p, run).entry);
  expect_reported_without_wait(data, run, waits,
                               {{"cp.async.bulk.tensor.3d", "loads of operands"},
                                {"cp.async.bulk.tensor.4d", "loads of scales"},
                                {"st.global", "D"},
                                {"ld.global", "biases"}});
}

}  // namespace
}  // namespace dualgemm::test
