// `--device auto`, with made-up GPUs.
#include "tools/cli/commands/device_choice.hpp"

#include <gtest/gtest.h>

namespace dualgemm::cli {
namespace {

Problem problem() {
  Problem made;
  made.m = 16, made.n = 128, made.k = 256;
  return made;
}

const Expected<DeviceCaps> kNoGpu = Status::unsupported("device", "cuda", "there is none");

// A machine without a GPU has nothing to explain: `--device cuda` says what its driver says.
TEST(ChooseDevice, WithoutAGpuTheCpuAndNotAWord) {
  const DeviceChoice choice = choose_device({}, StrategyId::kAuto, problem(), kNoGpu, "");
  EXPECT_EQ(choice.device, DeviceKind::kCpu);
  EXPECT_EQ(choice.why, "");
}

TEST(ChooseDevice, AGpuThatTakesTheProblem) {
  const GpuDescription* h200 = find_gpu("h200");
  ASSERT_NE(h200, nullptr);
  const DeviceCaps caps = caps_of(*h200);
  const DeviceChoice choice = choose_device({}, StrategyId::kAuto, problem(), caps, "");
  // A build without CUDA has no kernels for it.
  EXPECT_EQ(choice.device, caps.isas.empty() ? DeviceKind::kCpu : DeviceKind::kCuda) << choice.why;
}

TEST(ChooseDevice, WhatBelongsToTheCpuDecidesForIt) {
  const Expected<DeviceCaps> gpu = caps_of(*find_gpu("h200"));
  ExecutionOptions isa, threads;
  isa.isa = Isa::kAvx2;
  threads.threads = 2;
  EXPECT_EQ(choose_device(isa, StrategyId::kAuto, problem(), gpu, "").device, DeviceKind::kCpu);
  EXPECT_EQ(choose_device(threads, StrategyId::kAuto, problem(), gpu, "").device, DeviceKind::kCpu);
  EXPECT_EQ(choose_device({}, StrategyId::kAuto, problem(), gpu, "avx2").device, DeviceKind::kCpu);
}

TEST(ChooseDevice, ADeviceByNameStays) {
  ExecutionOptions cuda;
  cuda.device = DeviceKind::kCuda;
  EXPECT_EQ(choose_device(cuda, StrategyId::kAuto, problem(), kNoGpu, "").device,
            DeviceKind::kCuda);
  EXPECT_EQ(settle_device(cuda, StrategyId::kAuto, problem()), "");
}

TEST(GpuTable, RefusesWhatIsNoDescription) {
  EXPECT_TRUE(parse_gpu(R"({"compute_capability": 90, "sms": 132})", "x.json"));
  for (const char* text :
       {"", "[]", "{", "{}", R"({"compute_capability": "9.0", "sms": 1})",
        R"({"compute_capability": 90, "sms": 0})", R"({"compute_capability": 90, "sms": 1e99})",
        R"({"compute_capability": 90, "sms": 18446744073709551615})",
        R"({"compute_capability": 90, "sms": 1, "l2_bytes": -1})",
        R"({"compute_capability": 90, "sms": 1, "name": 5})",
        R"({"compute_capability": 90, "sms": 1, "product": null})",
        R"({"compute_capability": 90, "sms": 1, "aliases": "x"})",
        R"({"compute_capability": 90, "sms": 1, "aliases": ["x", 5]})",
        R"({"compute_capability": 90, "sms": 1, "memory_gbps": "fast"})",
        R"({"compute_capability": 90, "sms": 1, "memory_gbps": -1})",
        R"({"compute_capability": 90, "sms": [1]})"}) {
    const Expected<GpuDescription> gpu = parse_gpu(text, "x.json");
    EXPECT_FALSE(gpu) << text;
    EXPECT_EQ(gpu.status().message().rfind("x.json", 0), 0u) << gpu.status().message();
  }
  // So deep that a reader which calls itself for each level would end with its stack.
  const std::string deep = std::string(400'000, '[') + std::string(400'000, ']');
  EXPECT_FALSE(parse_gpu(R"({"compute_capability": 90, "sms": )" + deep + "}", "x.json"));
}

}  // namespace
}  // namespace dualgemm::cli
