// The default number of threads: affinity, control groups made of files, the two variables.
#include "core/usable_cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace dualgemm::core {
namespace {

namespace fs = std::filesystem;

TEST(UsableCores, FollowTheThreadsAffinity) {
  std::thread([] {  // the mask of this thread only
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    EXPECT_LE(usable_cores(), CPU_COUNT(&set));
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    EXPECT_EQ(usable_cores(), 1);
  })
      .join();
}

int threads(int cores, const char* ours, const char* openmp) {
  const Expected<int> result = bounded_threads(cores, ours, openmp);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : -1;
}

TEST(BoundedThreads, TheVariablesLowerTheNumber) {
  EXPECT_EQ(threads(6, nullptr, nullptr), 6);
  EXPECT_EQ(threads(6, "", ""), 6) << "empty is not set";
  EXPECT_EQ(threads(6, "2", nullptr), 2);
  EXPECT_EQ(threads(6, nullptr, "3"), 3);
  EXPECT_EQ(threads(6, "4", "2"), 4) << "ours wins";
  EXPECT_EQ(threads(6, "16", "99999999999999999999"), 6) << "the cores bound it";
  EXPECT_EQ(threads(6, "99999999999999999999", nullptr), 6);
  EXPECT_EQ(threads(6, " 2 ", nullptr), 2);
  EXPECT_EQ(threads(6, nullptr, "3,2,1"), 3) << "one number for each level of nesting";
}

TEST(BoundedThreads, NonsenseIsAnError) {
  for (const char* text : {"0", "-1", "two", "2x", "1.5", " ", "3,2", "-99999999999999999999"}) {
    const Expected<int> result = bounded_threads(6, text, nullptr);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(result.status().message(),
              "DUALGEMM_NUM_THREADS: '" + std::string(text) + "'; must be a positive number");
  }
  for (const char* text : {"0", "x", ",2", "2;3"}) {
    const Expected<int> result = bounded_threads(6, nullptr, text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.status().argument(), "OMP_NUM_THREADS");
  }
}

class QuotaCores : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "dualgemm_quota_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  int cores(const std::string& groups) const {
    write("self", groups);
    return quota_cores(root_ / "self", root_);
  }

  fs::path root_;
};

TEST_F(QuotaCores, NoGroupsNoLimit) {
  EXPECT_EQ(quota_cores("/nonexistent/file", "/nonexistent/root"), INT_MAX);
  EXPECT_EQ(cores("0::/"), INT_MAX);
}

TEST_F(QuotaCores, Version2) {
  write("cpu.max", "max 100000");
  EXPECT_EQ(cores("0::/"), INT_MAX);
  write("cpu.max", "400000 100000");
  EXPECT_EQ(cores("0::/"), 4);
  write("cpu.max", "250000 100000");
  EXPECT_EQ(cores("0::/"), 2) << "rounded down: a throttled thread stops its whole team";
  write("cpu.max", "50000 100000");
  EXPECT_EQ(cores("0::/"), 1) << "never none";
}

TEST_F(QuotaCores, TheTightestAncestorCounts) {
  write("a/cpu.max", "300000 100000");
  write("a/b/cpu.max", "max 100000");
  write("a/b/c/cpu.max", "800000 100000");
  EXPECT_EQ(cores("0::/a/b/c"), 3);
  EXPECT_EQ(cores("0::/elsewhere"), INT_MAX);
}

TEST_F(QuotaCores, Version1) {
  write("cpu/jobs/cpu.cfs_quota_us", "-1");
  write("cpu/jobs/cpu.cfs_period_us", "100000");
  const std::string groups = "5:memory:/jobs\n4:cpu,cpuacct:/jobs\n0::/";
  EXPECT_EQ(cores(groups), INT_MAX);
  write("cpu/jobs/cpu.cfs_quota_us", "200000");
  EXPECT_EQ(cores(groups), 2);
  EXPECT_EQ(cores("4:cpuacct:/jobs"), INT_MAX) << "only the cpu controller counts";
}

TEST_F(QuotaCores, GarbageIsNoLimit) {
  for (const char* text : {"", "lots 100000", "100000", "100000 0", "-5 100000", "nan nan"}) {
    write("cpu.max", text);
    EXPECT_EQ(cores("0::/\nnonsense\n:"), INT_MAX) << text;
  }
}

}  // namespace
}  // namespace dualgemm::core
