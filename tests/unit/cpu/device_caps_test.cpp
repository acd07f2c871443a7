// Detection on this machine.
#include "cpu/device_caps.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <thread>

#include "cpu/arm_cores.hpp"

namespace dualgemm::cpu {
namespace {

TEST(DeviceCaps, DescribesThisMachine) {
  const DeviceCaps caps = detect_device_caps();
  EXPECT_EQ(caps.kind, DeviceKind::kCpu);
  EXPECT_FALSE(caps.name.empty());
  ASSERT_FALSE(caps.isas.empty());
  EXPECT_EQ(caps.isas.back(), Isa::kScalar);
  // Best first; an enumerator's number says when it came, not how good it is.
  constexpr std::array kBestFirst = {Isa::kAmxBf16,  Isa::kAvx512Bf16, Isa::kAvx512Vnni, Isa::kAvx2,
                                     Isa::kNeonI8mm, Isa::kNeon,       Isa::kScalar};
  auto at = kBestFirst.begin();
  for (const Isa isa : caps.isas) {
    at = std::find(at, kBestFirst.end(), isa);
    ASSERT_NE(at, kBestFirst.end()) << "best first, and each once: " << static_cast<int>(isa);
    ++at;
  }
  EXPECT_GE(caps.cores, 1);
  EXPECT_GE(caps.l1d_bytes, 8 << 10);
  EXPECT_GE(caps.l2_bytes, caps.l1d_bytes);
  EXPECT_GE(caps.l3_bytes, 0);
}

// /proc/cpuinfo is an independent witness for the instruction sets; below qemu-user it is the
// host's, and scripts/test_aarch64 asks for each of the emulated processors.
TEST(DeviceCaps, IsasAgreeWithTheKernel) {
#if defined(__aarch64__)
  constexpr const char* kHeading = "Features";
#else
  constexpr const char* kHeading = "flags";
#endif
  std::ifstream file("/proc/cpuinfo");
  std::string flags;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(kHeading, 0) == 0) flags = line + " ";
  }
  if (flags.empty()) GTEST_SKIP() << "no " << kHeading << " in /proc/cpuinfo";
  const auto has = [&](const char* flag) {
    return flags.find(std::string(" ") + flag + " ") != std::string::npos;
  };
  const auto offered = [](Isa isa) {
    for (const Isa one : detect_device_caps().isas) {
      if (one == isa) return true;
    }
    return false;
  };
  EXPECT_EQ(offered(Isa::kNeon), has("asimddp"));
  EXPECT_EQ(offered(Isa::kNeonI8mm), has("asimddp") && has("i8mm"));
  EXPECT_EQ(offered(Isa::kAvx2), has("avx2") && has("fma") && has("f16c"));
  EXPECT_EQ(offered(Isa::kAvx512Vnni), offered(Isa::kAvx2) && has("avx512f") && has("avx512bw") &&
                                           has("avx512dq") && has("avx512vl") &&
                                           has("avx512_vnni"));
  EXPECT_EQ(offered(Isa::kAvx512Bf16), offered(Isa::kAvx512Vnni) && has("avx512_bf16"));
  if (offered(Isa::kAmxBf16)) {
    EXPECT_TRUE(has("amx_bf16") && has("amx_tile"));
  }
}

TEST(DeviceCaps, NamesTheCoresOfArmMachines) {
  const auto core = [](const char* implementer, const char* part) {
    return std::string("processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: ") + implementer +
           "\nCPU architecture: 8\nCPU part\t: " + part + "\nCPU revision\t: 1\n\n";
  };
  const std::string big = core("0x41", "0xd85"), little = core("0x41", "0xd87");
  EXPECT_EQ(arm_core_names(big + little + big + little), "Cortex-X925, Cortex-A725");
  EXPECT_EQ(arm_core_names(core("0x41", "0xd4f")), "Neoverse V2");
  EXPECT_EQ(arm_core_names(core("0xc0", "0xac3")), "Arm CPU, implementer 0xc0, part 0xac3");
  // The same number from another maker is another core.
  EXPECT_EQ(arm_core_names(core("0x51", "0xd4f")), "Arm CPU, implementer 0x51, part 0xd4f");
  EXPECT_EQ(arm_core_names("model name\t: AMD EPYC\nflags\t: fpu"), "");
  EXPECT_EQ(arm_core_names(""), "");
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

}  // namespace
}  // namespace dualgemm::cpu
