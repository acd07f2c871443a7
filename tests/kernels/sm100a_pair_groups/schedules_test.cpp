// Tiles of groups in every schedule, and beside the grid before.
#include "kernels/simulation/schedules.hpp"
#include "kernels/simulation/overlap.hpp"
#include "kernels/sm100a_pair_groups/simulated_run.hpp"
#include "support/grouped.hpp"

namespace dualgemm::test {
namespace {

// Two pairs have five tiles or more each; experts begin anywhere in a scale tile of A.
void expect_same_tiles_in_every_schedule(int64_t k, bool prepared, DataType output,
                                         uint64_t seeds) {
  Problem p{.m = 330, .n = 336, .k = k, .l = 5, .d = {.type = output}};
  p.grouping = Grouping::kContiguous;
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;  // Up's stay linear
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  if (output == DataType::kE2M1) p.d.scale_layout = ScaleLayout::kSwizzled128x4;
  Rng rng;
  std::vector<int32_t> experts(330, 4);
  std::fill(experts.begin() + 7, experts.begin() + 60, 0);
  std::fill(experts.begin() + 60, experts.begin() + 63, -1);
  RandomCase data(p, rng, Values::kWide, {}, experts);
  expect_same_bits_in_schedules(
      data, PairGroupsRun{.prepared = prepared}, seeds, reference::Accumulation::kTensorCoreStep,
      [](const PairGroupsRun& run) {
        ASSERT_TRUE(run.result.reports.list.empty())  // no advisory either
            << ptxsim::to_string(run.result.reports.list.front());
      });
}

TEST(Sm100aPairGroupSchedules, Unpacked) {
  expect_same_tiles_in_every_schedule(256 * 7, false, DataType::kF32, 10);
}
TEST(Sm100aPairGroupSchedules, Prepared) {
  expect_same_tiles_in_every_schedule(256 * 7 - 64, true, DataType::kE2M1, 10);
}
// Several tiles in the ring at a time.
TEST(Sm100aPairGroupSchedules, OneStageATile) {
  for (const bool prepared : {false, true})
    expect_same_tiles_in_every_schedule(192, prepared, DataType::kF32, 6);
}

TEST(Sm100aPairGroupOverlap, NothingIsReadOrWrittenBeforeTheGridBeforeHasEnded) {
  Problem p = swizzled({.m = 140, .n = 70, .k = 320, .l = 2, .grouping = Grouping::kMasked});
  p.bias = BiasType::kF32;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {140, 2});
  const Waits waits("dual_gemm_sm100a_pair_groups",
                    cuda::sm100a_pair_groups::instance_for(DataType::kF16).entry);
  expect_reported_without_wait(data, PairGroupsRun{}, waits,
                               {{"ld.global.v4", "the table of tiles"},
                                {"cp.async.bulk.tensor.3d", "loads of operands"},
                                {"st.global", "D"}});
}

}  // namespace
}  // namespace dualgemm::test
