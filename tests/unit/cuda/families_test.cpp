// The table of kernel families: ids, names, instruction sets, and the choice by the least time.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "cuda/families.hpp"
#include "cuda/strategies/strategies.hpp"
#include "plan/choose.hpp"
#include "support/checked.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::cuda {
namespace {

TEST(Families, EachIdHasOneRow) {
  std::set<KernelId> ids;
  for (const KernelFamily* const family : families()) {
    EXPECT_TRUE(ids.insert(family->id).second) << plan::kernel_name(family->id);
    EXPECT_EQ(find_family(family->id, family->isa), family);
    EXPECT_STRNE(plan::kernel_name(family->id), "");
  }
  EXPECT_EQ(find_family(KernelId::kSm90a, Isa::kSm80), nullptr);
  EXPECT_EQ(find_family(KernelId::kNone, Isa::kSm80), nullptr);
  EXPECT_EQ(find_family(KernelId::kCublasLt, Isa::kSm80), nullptr);
}

// Two families of one rank that support the same problem would have an undefined order.
TEST(Families, RanksAreDistinctWhereBothSupportAProblem) {
  DeviceCaps caps = test::made_up_gpu(100, 148);
  const Problem problems[] = {
      {.m = 16, .n = 4096, .k = 4096},
      {.m = 512, .n = 4096, .k = 4096},
      {.m = 512, .n = 4096, .k = 4096, .l = 8, .grouping = Grouping::kContiguous},
      {.m = 16, .n = 4096, .k = 4096, .a = {.type = DataType::kF16}},
      {.m = 512,
       .n = 4096,
       .k = 4096,
       .l = 8,
       .a = {.type = DataType::kF16},
       .grouping = Grouping::kContiguous}};
  for (const Problem& problem : problems) {
    for (const bool prepared : {false, true}) {
      std::set<std::pair<Isa, int>> ranks;
      const KernelRequest request{problem, prepared, false, caps};
      for (const KernelFamily* const family : families()) {
        if (!family->supports(request).ok()) continue;
        EXPECT_TRUE(ranks.insert({family->isa, family->rank}).second)
            << plan::kernel_name(family->id) << ", m = " << problem.m;
      }
    }
  }
}

// What a caller wrote into a plan reaches the count of its workspace before run() refuses it.
TEST(Families, NoNumberOfAPlanEndsTheProcess) {
  for (const auto& [compute_capability, isa] :
       {std::pair{90, Isa::kSm90a}, {80, Isa::kSm80}, {100, Isa::kSm100a}, {120, Isa::kSm120a}}) {
    const DeviceCaps caps = test::made_up_gpu(compute_capability, 132);
    int planned = 0;
    for (const Strategy* const strategy : strategies()) {
      const StrategyId id = strategy->id();
      const auto plan =
          plan::choose({.m = 100, .n = 4096, .k = 7168}, {.strategy = id}, caps, strategies(), "");
      if (!plan) continue;
      ++planned;
      for (const int64_t ctas : {int64_t{0}, int64_t{-1}, int64_t{1} << 32, INT64_MAX, INT64_MIN}) {
        Plan edited = *plan;
        edited.shape.ctas = ctas;
        EXPECT_GE(strategy->workspace_bytes(edited), 0) << name_of(isa) << ", " << ctas;
      }
      if (id != StrategyId::kFused) continue;  // the others refuse such a problem first
      for (const Problem& problem : {Problem{.m = 100, .n = 4096, .k = int64_t{1} << 31},
                                     Problem{.m = 100, .n = 4096, .k = int64_t{1} << 40},
                                     Problem{.m = 1, .n = 1, .k = 16, .l = int64_t{1} << 44}}) {
        Plan edited = *plan;
        edited.problem = problem;
        EXPECT_EQ(strategy->workspace_bytes(edited), 0) << name_of(isa);
      }
    }
    EXPECT_GT(planned, 1) << name_of(isa);
  }
}

// The plan's kernel is that of the least time among the families that support its problem.
TEST(Families, APlanTakesTheLeastTime) {
  const DeviceCaps caps = test::made_up_gpu(100, 148);
  for (const int64_t m : {1, 16, 64, 128, 129, 512, 4096}) {
    for (const int64_t n : {768, 4096, 28672}) {
      const Problem problem{.m = m, .n = n, .k = 4096};
      const auto plan =
          plan::choose(problem, {.strategy = StrategyId::kFused}, caps, strategies(), "");
      ASSERT_TRUE(plan) << plan.status().message();
      const KernelRequest request{problem, false, false, caps};
      const KernelFamily* const chosen = find_family(plan->kernel_id, plan->isa);
      ASSERT_NE(chosen, nullptr);
      EXPECT_EQ(plan->kernel, plan::kernel_name(chosen->id));
      for (const KernelFamily* const family : families()) {
        if (family->isa != plan->isa || !family->supports(request).ok()) continue;
        EXPECT_LE(chosen->fastest(request).time, family->fastest(request).time)
            << plan->config() << ", " << plan::kernel_name(family->id);
      }
    }
  }
}

TEST(Families, AnIdOfAnotherInstructionSetIsRefusedByName) {
  const Problem problem{.m = 16, .n = 4096, .k = 4096};
  auto plan = plan::choose(problem, {.strategy = StrategyId::kFused}, test::made_up_gpu(100, 148),
                           strategies(), "");
  ASSERT_TRUE(plan);
  plan::set_kernel(*plan, KernelId::kSm90a);
  EXPECT_EQ(fused_strategy().workspace_bytes(*plan), 0);
  EXPECT_EQ(fused_strategy().run(*plan, test::checked(problem), {}, nullptr, nullptr).message(),
            "plan.kernel: wgmma; must be a kernel of fused on sm100a");
}

// A name is that of all kernels which print it.
TEST(Families, NamesStandForAllTheirKernels) {
  const plan::NamedKernels skinny("skinny"), unknown("made_up"), any;
  EXPECT_TRUE(skinny.contains(KernelId::kSm90aSkinny));
  EXPECT_TRUE(skinny.contains(KernelId::kSm100aSkinny));
  EXPECT_TRUE(skinny.contains(KernelId::kSm100aSkinnyGroups));
  EXPECT_FALSE(skinny.contains(KernelId::kSm100aSkinnyPersistent));
  EXPECT_FALSE(unknown.contains(KernelId::kSm80));
  EXPECT_FALSE(unknown.any());
  EXPECT_TRUE(any.contains(KernelId::kSm80));
}

}  // namespace
}  // namespace dualgemm::cuda
