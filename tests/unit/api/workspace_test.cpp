// Workspaces that free themselves, and the one call that needs none.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "dualgemm/dualgemm.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {
namespace {

TEST(Workspace, IsAlignedSizedAndWritable) {
  for (const int64_t bytes : {int64_t{1}, int64_t{63}, int64_t{64}, int64_t{65}, int64_t{100000}}) {
    const auto workspace = Workspace::allocate(bytes);
    ASSERT_TRUE(workspace.ok()) << workspace.status().message();
    EXPECT_EQ(workspace->size_bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace->data()) % 64, 0u);
    EXPECT_EQ(workspace->device(), DeviceKind::kCpu);
    std::memset(workspace->data(), 0xFF, static_cast<size_t>(bytes));
  }
  const auto none = Workspace::allocate(0);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->data(), nullptr);
  EXPECT_EQ(none->size_bytes(), 0);
}

TEST(Workspace, RefusesWhatCannotBe) {
  EXPECT_EQ(Workspace::allocate(-1).status().message(), "bytes: -1; must not be negative");
  EXPECT_EQ(Workspace::allocate(INT64_MAX).status().code(), StatusCode::kOverflow);
  EXPECT_EQ(Workspace::allocate(INT64_MAX / 2).status().code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(Workspace::allocate(64, static_cast<DeviceKind>(99)).status().argument(), "device");
}

TEST(Workspace, MovesAndLeavesNothingBehind) {
  Workspace first = *Workspace::allocate(128);
  void* const data = first.data();
  Workspace second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second.size_bytes(), 128);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): what is promised
  EXPECT_EQ(first.size_bytes(), 0);
  second = *Workspace::allocate(64);
  EXPECT_EQ(second.size_bytes(), 64);
}

TEST(Workspace, RunsWhatItWasAllocatedFor) {
  Rng rng;
  const Problem p{.m = 5, .n = 40, .k = 256};
  RandomCase data(p, rng, Values::kRandom);
  const auto plan = make_plan(p, {.strategy = StrategyId::kTwoPass});
  ASSERT_TRUE(plan.ok());
  ASSERT_GT(plan->workspace_bytes, 0);
  const auto workspace = Workspace::allocate(*plan);
  ASSERT_TRUE(workspace.ok());
  const Status status = run(*plan, data.buffers(), *workspace);
  EXPECT_TRUE(status.ok()) << status.message();
  const auto small = Workspace::allocate(plan->workspace_bytes - 1);
  EXPECT_EQ(run(*plan, data.buffers(), *small).code(), StatusCode::kWorkspaceTooSmall);
  Plan elsewhere = *plan;
  elsewhere.device = DeviceKind::kCuda;
  EXPECT_EQ(run(elsewhere, data.buffers(), *workspace).message(),
            "workspace: allocated on cpu; must be on the plan's device, cuda");
}

// It prepares when the options ask for it, and then gives the bits of a prepared run.
TEST(RunOnce, PreparesWhenAsked) {
  Rng rng;
  const Problem p{.m = 5, .n = 40, .k = 256};
  RandomCase data(p, rng, Values::kRandom);
  const PlanOptions options{.strategy = StrategyId::kFused, .prepared = true};
  const Status status = run(p, data.buffers(), options);
  ASSERT_TRUE(status.ok()) << status.message();
  const std::vector<uint8_t> once(data.d.data.begin(), data.d.data.end());
  data.poison_d();
  const auto plan = make_plan(p, options);
  ASSERT_TRUE(plan.ok());
  Buffers buffers = data.buffers();
  const auto weights = prepare(*plan, buffers);
  ASSERT_TRUE(weights.ok());
  buffers.prepared = &*weights;
  const auto workspace = Workspace::allocate(*plan);
  ASSERT_TRUE(run(*plan, buffers, *workspace).ok());
  EXPECT_EQ(once, std::vector<uint8_t>(data.d.data.begin(), data.d.data.end()));
  buffers = data.buffers();
  buffers.gate = nullptr;
  EXPECT_EQ(run(p, buffers, options).argument(), "gate");
}

}  // namespace
}  // namespace dualgemm::test
