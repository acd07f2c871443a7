// Programmatic dependent launch: until griddepcontrol.wait the grid before may be at work on
// whatever the kernel reads and writes (simulate() says so of every run). Without one of its waits
// the kernel is reported.
#include "kernels/simulation/overlap.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"

namespace dualgemm::test {
namespace {

void expect_every_wait_needed(bool prepared) {
  const Problem p = swizzled({.m = 130, .n = 20, .k = 64, .d = {.type = DataType::kF32}});
  const std::string entry = cuda::sm100a_pair::find_instance(64, DataType::kF32, prepared)->entry;
  const std::string module_name =
      prepared ? "dual_gemm_sm100a_pair_prepared" : "dual_gemm_sm100a_pair";
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  data.a_row_scale.assign(static_cast<size_t>(p.m), 2.0f);  // read before the sums are there
  const Waits waits(module_name, entry);
  for (size_t i = 0; i < waits.count(); ++i) {
    SimulatedRun run{.tile_n = 64, .prepared = prepared};
    run.mutant = waits.without(i);
    EXPECT_FALSE(simulate(data, run));
    ASSERT_FALSE(run.result.reports.list.empty()) << "wait " << i;
    for (const ptxsim::Report& report : run.result.reports.list) EXPECT_EQ(report.rule, 21);
  }
  EXPECT_EQ(waits.count(), 2u);  // of the thread that loads, and of the epilogue
}

TEST(Sm100aPairOverlap, EveryWaitIsNeeded) { expect_every_wait_needed(false); }
// Prepared weights are read before it, and are not the grid's before (simulate() says so).
TEST(Sm100aPairOverlap, EveryWaitIsNeededWithPreparedWeights) { expect_every_wait_needed(true); }

}  // namespace
}  // namespace dualgemm::test
