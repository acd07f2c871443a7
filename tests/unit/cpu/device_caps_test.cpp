// Detection on this machine, and control groups made of files.
#include "cpu/device_caps.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace dualgemm::cpu {
namespace {

namespace fs = std::filesystem;

TEST(DeviceCaps, DescribesThisMachine) {
  const DeviceCaps caps = detect_device_caps();
  EXPECT_EQ(caps.kind, DeviceKind::kCpu);
  EXPECT_FALSE(caps.name.empty());
  ASSERT_FALSE(caps.isas.empty());
  EXPECT_EQ(caps.isas.back(), Isa::kScalar);
  for (size_t i = 1; i < caps.isas.size(); ++i) {
    EXPECT_GT(static_cast<int>(caps.isas[i - 1]), static_cast<int>(caps.isas[i])) << "best first";
  }
  EXPECT_GE(caps.cores, 1);
  EXPECT_GE(caps.l1d_bytes, 8 << 10);
  EXPECT_GE(caps.l2_bytes, caps.l1d_bytes);
  EXPECT_GE(caps.l3_bytes, 0);
}

// /proc/cpuinfo is an independent witness for the instruction sets.
TEST(DeviceCaps, IsasAgreeWithTheKernel) {
  std::ifstream file("/proc/cpuinfo");
  std::string flags;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) == 0) flags = line + " ";
  }
  if (flags.empty()) GTEST_SKIP() << "no x86 flags in /proc/cpuinfo";
  const auto has = [&](const char* flag) {
    return flags.find(std::string(" ") + flag + " ") != std::string::npos;
  };
  const auto offered = [](Isa isa) {
    for (const Isa one : detect_device_caps().isas) {
      if (one == isa) return true;
    }
    return false;
  };
  EXPECT_EQ(offered(Isa::kAvx2), has("avx2") && has("fma") && has("f16c"));
  EXPECT_EQ(offered(Isa::kAvx512Vnni), offered(Isa::kAvx2) && has("avx512f") && has("avx512bw") &&
                                           has("avx512dq") && has("avx512vl") &&
                                           has("avx512_vnni"));
  if (offered(Isa::kAmxBf16)) {
    EXPECT_TRUE(has("amx_bf16") && has("amx_tile"));
  }
}

TEST(DeviceCaps, AffinityLimitsTheCores) {
  std::thread([] {  // the mask of this thread only
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    EXPECT_EQ(detect_device_caps().cores, 1);
  })
      .join();
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
}  // namespace dualgemm::cpu
