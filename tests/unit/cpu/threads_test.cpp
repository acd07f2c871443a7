// Whole calls on many threads: after fork(), from several callers at once, with the caller's modes
// of arithmetic; the bits are always those of one thread.
#include <fenv.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/inputs.hpp"
#include "support/sanitizers.hpp"
#include "unit/cpu/run.hpp"

namespace dualgemm::test {
namespace {

constexpr StrategyId kStrategies[] = {
    StrategyId::kTwoPass, StrategyId::kCached,        StrategyId::kGraph,
    StrategyId::kStreams, StrategyId::kFusedEpilogue, StrategyId::kFusedSequential,
    StrategyId::kFused,   StrategyId::kFp8,
};

bool is_prepared(StrategyId strategy) {
  return strategy == StrategyId::kCached || strategy == StrategyId::kGraph;
}

std::vector<uint8_t> bits_with(RandomCase& c, StrategyId strategy, int threads) {
  c.poison_d();
  const RunResult result = run_cpu(c.problem, c.buffers(),
                                   {.isa = machine().isas.front(),
                                    .strategy = strategy,
                                    .threads = threads,
                                    .prepared = is_prepared(strategy)});
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  EXPECT_LE(result.info.threads, threads);
  return output_bytes(c);
}

TEST(CpuThreads, AChildOfForkComputesTheSameBits) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer ends a child that starts threads";
  Rng rng;
  for (const int64_t m : {1, 70}) {
    RandomCase c({.m = m, .n = 176, .k = 560}, rng, Values::kRandom);
    for (const StrategyId strategy : kStrategies) {
      const auto expected = bits_with(c, strategy, 3);  // helpers exist from here on
      const pid_t child = fork();
      if (child == 0) {
        alarm(120);  // ends a child that hangs
        c.poison_d();
        const RunResult result = run_cpu(c.problem, c.buffers(),
                                         {.isa = machine().isas.front(),
                                          .strategy = strategy,
                                          .threads = 3,
                                          .prepared = is_prepared(strategy)});
        const bool same = result.info.threads == 3 && output_bytes(c) == expected;
        _exit(same ? 0 : 1);
      }
      int status = -1;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0) << name_of(strategy) << ", m " << m;
    }
  }
}

TEST(CpuThreads, SeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([caller] {
      Rng rng;
      for (const int64_t m : {1, 3, 40}) {
        RandomCase c({.m = m, .n = 112, .k = 272}, rng, Values::kRandom);
        for (const StrategyId strategy : kStrategies) {
          const auto expected = bits_with(c, strategy, 1);
          for (int call = 0; call < 5; ++call)
            ASSERT_EQ(bits_with(c, strategy, 2 + (caller + call) % 3), expected)
                << name_of(strategy) << ", m " << m;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// Helpers outlive a call, so they must not keep the modes of the thread that started them.
TEST(CpuThreads, TheCallersRoundingModeHoldsOnAllThreads) {
  Rng rng;
  Problem problem{.m = 40, .n = 176, .k = 560};
  problem.d.type = DataType::kF32;
  RandomCase c(problem, rng, Values::kWide);
  c.alpha_gate = c.alpha_up = 1e-3f;
  const auto to_nearest = bits_with(c, StrategyId::kFused, 4);
  ASSERT_EQ(fesetround(FE_UPWARD), 0);
  const auto one = bits_with(c, StrategyId::kFused, 1);
  std::vector<std::vector<uint8_t>> many;
  for (int call = 0; call < 20; ++call) many.push_back(bits_with(c, StrategyId::kFused, 4));
  fesetround(FE_TONEAREST);
  EXPECT_NE(one, to_nearest) << "this problem shows the mode";
  for (const auto& bits : many) EXPECT_EQ(bits, one);
}

}  // namespace
}  // namespace dualgemm::test
