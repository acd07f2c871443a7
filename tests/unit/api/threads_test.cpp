// The default number of threads as callers meet it: DUALGEMM_NUM_THREADS and OMP_NUM_THREADS in
// make_plan(), run() and quantize_nvfp4(), affinity, and what a plan says about it.
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <thread>
#include <vector>

#include "dualgemm/dualgemm.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm {
namespace {

const Problem kLarge{.m = 64, .n = 2048, .k = 2048};

class DefaultThreads : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    unsetenv("DUALGEMM_NUM_THREADS");
    unsetenv("OMP_NUM_THREADS");
  }
};

TEST_F(DefaultThreads, AreTheUsableCoresForALargeCall) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(make_plan(kLarge)->threads, device_caps().cores);
  EXPECT_LE(make_plan(kLarge)->threads, CPU_COUNT(&set));
}

TEST_F(DefaultThreads, FollowTheCallingThreadsAffinity) {
  ASSERT_TRUE(make_plan(kLarge).ok());  // the machine has been looked at before
  std::thread([] {
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    EXPECT_EQ(make_plan(kLarge)->threads, 1);
  }).join();
}

TEST_F(DefaultThreads, TheVariablesBoundThem) {
  setenv("OMP_NUM_THREADS", "1", 1);
  EXPECT_EQ(make_plan(kLarge)->threads, 1);
  setenv("DUALGEMM_NUM_THREADS", "4096", 1);
  EXPECT_EQ(make_plan(kLarge)->threads, device_caps().cores) << "ours wins, the cores bound it";
  setenv("DUALGEMM_NUM_THREADS", "1", 1);
  EXPECT_EQ(make_plan(kLarge)->threads, 1);
  EXPECT_EQ(make_plan(kLarge, {.threads = 3})->threads, 3) << "what is asked for is not a default";
}

TEST_F(DefaultThreads, NonsenseIsAnErrorWhereverADefaultIsWanted) {
  setenv("DUALGEMM_NUM_THREADS", "all", 1);
  const char* message = "DUALGEMM_NUM_THREADS: 'all'; must be a positive number";
  EXPECT_EQ(make_plan(kLarge).status().message(), message);
  EXPECT_EQ(run(kLarge, {}).message(), message);
  std::vector<float> x(64 * 16, 1.0f);
  std::vector<uint8_t> codes(64 * 8), scales(64);
  const auto quantise = [&](int threads) {
    return quantize_nvfp4(x.data(), DataType::kF32, 64, 16, 0, codes.data(), 0, scales.data(),
                          {.threads = threads})
        .status();
  };
  EXPECT_EQ(quantise(0).message(), message);
  EXPECT_TRUE(quantise(2).ok());
  EXPECT_TRUE(make_plan(kLarge, {.threads = 2}).ok());
  DeviceCaps elsewhere = device_caps();
  elsewhere.cores = 7;
  EXPECT_EQ(make_plan(kLarge, {}, elsewhere)->threads, 7) << "a plan for another machine";
}

TEST_F(DefaultThreads, ASmallCallHasOneAndThePlanSaysWhy) {
  DeviceCaps caps = device_caps();
  caps.cores = 16;
  const Plan plan = *make_plan({.m = 1, .n = 16, .k = 64}, {.strategy = StrategyId::kFused}, caps);
  EXPECT_EQ(plan.threads, 1);
  EXPECT_NE(plan.explain().find("threads    about 0.00"), std::string::npos) << plan.explain();
  EXPECT_NE(plan.explain().find("each further one needs 0.020 ms"), std::string::npos);
}

}  // namespace
}  // namespace dualgemm
