// The number of threads that a call on the CPU is given by default.
#include "plan/thread_count.hpp"

#include <gtest/gtest.h>

#include "plan/choose.hpp"

namespace dualgemm {
namespace {

using plan::worthwhile_threads;

constexpr Isa kVector[] = {Isa::kAvx2,    Isa::kAvx512Vnni, Isa::kAvx512Bf16,
                           Isa::kAmxBf16, Isa::kNeon,       Isa::kNeonI8mm};

TEST(ThreadCount, ASmallCallHasOneThread) {
  for (const Isa isa : kVector) {
    EXPECT_EQ(worthwhile_threads({.m = 1, .n = 256, .k = 512}, StrategyId::kFused, isa, 64), 1);
    EXPECT_EQ(worthwhile_threads({.m = 16, .n = 128, .k = 256}, StrategyId::kFused, isa, 64), 1);
    EXPECT_EQ(worthwhile_threads({}, StrategyId::kFused, isa, 64), 1);
  }
}

TEST(ThreadCount, ALargeCallHasAllCores) {
  for (const Isa isa : kVector) {
    EXPECT_EQ(worthwhile_threads({.m = 1, .n = 4096, .k = 7168}, StrategyId::kFused, isa, 16), 16);
    EXPECT_EQ(worthwhile_threads({.m = 512, .n = 4096, .k = 7168}, StrategyId::kFused, isa, 192),
              192);
  }
}

TEST(ThreadCount, BetweenThemItGrowsWithTheCall) {
  int before = 1;
  for (int64_t n = 64; n <= 16384; n *= 2) {
    const Problem problem{.m = 4, .n = n, .k = 1024};
    const int threads = worthwhile_threads(problem, StrategyId::kFused, Isa::kAvx2, 32);
    EXPECT_GE(threads, before) << n;
    EXPECT_LE(threads, 2 * before + 1) << n;
    before = threads;
  }
  EXPECT_EQ(before, 32);
}

TEST(ThreadCount, SlowerWaysPayForMoreThreads) {
  const Problem small{.m = 4, .n = 128, .k = 512};
  EXPECT_EQ(worthwhile_threads(small, StrategyId::kFused, Isa::kAvx2, 8), 1);
  EXPECT_EQ(worthwhile_threads(small, StrategyId::kFused, Isa::kScalar, 8), 8);
  EXPECT_EQ(worthwhile_threads(small, StrategyId::kReference, Isa::kScalar, 8), 8);
}

TEST(ThreadCount, NeverMoreThanTheCoresNorLessThanOne) {
  const Problem large{.m = 4096, .n = 4096, .k = 4096};
  EXPECT_EQ(worthwhile_threads(large, StrategyId::kFused, Isa::kAvx2, 1), 1);
  EXPECT_EQ(worthwhile_threads(large, StrategyId::kFused, Isa::kAvx2, 0), 1);
  const Problem batches{.m = 1, .n = 64, .k = 64, .l = 4096};
  EXPECT_EQ(worthwhile_threads(batches, StrategyId::kFused, Isa::kAvx2, 8), 8);
}

}  // namespace
}  // namespace dualgemm
