// A build without CUTLASS's kernels knows the strategy by name and nothing else of it; with them,
// tests/kernels/cutlass has its tests.
#include "cuda/cutlass/instances.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

TEST(CutlassStrategyAbsent, IsRefusedByName) {
  if (!cuda::gated::instances().empty()) GTEST_SKIP() << "this build has CUTLASS's kernels";
  EXPECT_EQ(plan::find_strategy(cuda::strategies(), StrategyId::kCutlass, DeviceKind::kCuda),
            nullptr);
  const auto plan = plan::choose({.m = 1, .n = 1, .k = 16}, {.strategy = StrategyId::kCutlass},
                                 made_up_gpu(100), cuda::strategies(), "");
  EXPECT_EQ(plan.status().message(), "strategy: cutlass; this build does not contain it");
  const auto usual =
      plan::choose({.m = 1, .n = 1, .k = 16}, {}, made_up_gpu(100), cuda::strategies(), "");
  ASSERT_TRUE(usual.ok());
  EXPECT_EQ(usual->explain().find("cutlass"), std::string::npos);
}

}  // namespace
}  // namespace dualgemm::test
