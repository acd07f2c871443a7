// The device's memory and its numbers.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "fake_cuda/device_memory.hpp"
#include "fake_cuda/device_model.hpp"
#include "fake_cuda/settings.hpp"
#include "fake_cuda/streams.hpp"

namespace ptxsim_test {
namespace {

using namespace ptxsim::cuda;

constexpr uint64_t kMiB = 1 << 20;

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

TEST(DeviceMemory, WhatNobodyWroteStaysSoInCopies) {
  DeviceMemory memory(kMiB);
  uint64_t a = 0, b = 0;
  ASSERT_EQ(memory.allocate(Home::kDevice, 64, a), kSuccess);
  ASSERT_EQ(memory.allocate(Home::kDevice, 64, b), kSuccess);
  const std::array<char, 16> host{};
  EXPECT_EQ(memory.copy(pointer(a), host.data(), host.size()), kSuccess);
  EXPECT_EQ(memory.copy(pointer(b), pointer(a), 64), kSuccess);
  EXPECT_NO_THROW(memory.global().read(b, 16));
  EXPECT_ANY_THROW(memory.global().read(b + 16, 1));
}

TEST(DeviceMemory, RangesAreThoseOfOneAllocation) {
  DeviceMemory memory(kMiB);
  uint64_t a = 0;
  ASSERT_EQ(memory.allocate(Home::kDevice, 100, a), kSuccess);
  Location location;
  EXPECT_EQ(memory.locate(pointer(a + 99), 1, location), kSuccess);
  EXPECT_EQ(location.offset, 99u);
  EXPECT_EQ(memory.locate(pointer(a + 99), 2, location), kInvalidValue);
  EXPECT_EQ(memory.locate(pointer(a + 100), 1, location), kInvalidValue);
  int host = 0;
  EXPECT_EQ(memory.locate(&host, 4, location), kSuccess);
  EXPECT_EQ(location.allocation, nullptr);
}

TEST(DeviceMemory, FreedOnceAndAtItsBegin) {
  DeviceMemory memory(kMiB);
  uint64_t a = 0, b = 0;
  ASSERT_EQ(memory.allocate(Home::kDevice, 100, a), kSuccess);
  EXPECT_EQ(memory.release(a + 4, false), kInvalidValue);
  EXPECT_EQ(memory.release(a, true), kInvalidValue);  // not the host's
  EXPECT_EQ(memory.release(a, false), kSuccess);
  EXPECT_EQ(memory.release(a, false), kInvalidValue);
  EXPECT_EQ(memory.used(), 0u);
  ASSERT_EQ(memory.allocate(Home::kDevice, 100, b), kSuccess);
  EXPECT_NE(a, b);  // so that a late access is noticed
}

TEST(DeviceMemory, HasTheSizeOfTheGpu) {
  DeviceMemory memory(1000);
  uint64_t a = 0, b = 0;
  EXPECT_EQ(memory.allocate(Home::kDevice, 1001, a), kOutOfMemory);
  EXPECT_EQ(memory.allocate(Home::kDevice, 600, a), kSuccess);
  EXPECT_EQ(memory.allocate(Home::kDevice, 600, b), kOutOfMemory);
  EXPECT_EQ(memory.highest(), 600u);
}

// What another process stores while a launch runs stays, but for what the launch has changed.
TEST(DeviceMemory, OtherProcessesMayStoreMeanwhile) {
  DeviceMemory memory(kMiB), other(kMiB);
  uint64_t ours = 0, theirs = 0;
  ASSERT_EQ(memory.allocate(Home::kDevice, 16, ours), kSuccess);
  std::shared_ptr<SharedBytes> bytes;
  ASSERT_EQ(memory.share(ours, bytes), kSuccess);
  ASSERT_EQ(other.import(SharedBytes::of_descriptor(bytes->descriptor()), theirs), kSuccess);
  memory.load_host_memory();
  *memory.global().write(ours, 1) = std::byte{7};
  const std::array<uint8_t, 2> stored{1, 2};
  EXPECT_EQ(other.copy(pointer(theirs + 4), stored.data(), stored.size()), kSuccess);
  memory.store_host_memory();
  std::array<uint8_t, 6> found{};
  EXPECT_EQ(other.copy(found.data(), pointer(theirs), found.size()), kSuccess);
  EXPECT_EQ(found[0], 7);
  EXPECT_EQ(found[4], 1);
  EXPECT_EQ(found[5], 2);
  EXPECT_EQ(other.release(theirs, false), kSuccess);
  EXPECT_EQ(other.used(), 0u);
}

TEST(DeviceMemory, KernelsSeeRegisteredMemoryAtAnotherAddress) {
  DeviceMemory memory(kMiB);
  std::array<uint32_t, 4> host{1, 2, 3, 4};
  ASSERT_EQ(memory.register_host(host.data(), sizeof host), kSuccess);
  Location location;
  ASSERT_EQ(memory.locate(host.data() + 1, 4, location), kSuccess);
  ASSERT_NE(location.allocation, nullptr);
  const uint64_t device = location.allocation->address + location.offset;
  EXPECT_NE(device, reinterpret_cast<uint64_t>(host.data() + 1));
  memory.load_host_memory();
  uint32_t value = 0;
  std::memcpy(&value, memory.global().read(device, 4), 4);
  EXPECT_EQ(value, 2u);
  std::memset(memory.global().write(device, 4), 0, 4);
  memory.store_host_memory();
  EXPECT_EQ(host[1], 0u);
  EXPECT_EQ(memory.release(reinterpret_cast<uint64_t>(host.data()), true), kSuccess);
}

TEST(DeviceModel, NumbersOfTheGpus) {
  const struct {
    const char* key;
    int major, minor, sms, shared;
  } expected[] = {{"b200", 10, 0, 148, 227 * 1024},
                  {"h200", 9, 0, 132, 227 * 1024},
                  {"h100", 9, 0, 132, 227 * 1024},
                  {"rtx5090", 12, 0, 170, 99 * 1024},
                  {"gb10", 12, 1, 48, 99 * 1024}};
  for (const auto& gpu : expected) {
    const DeviceModel* device = find_device(gpu.key);
    ASSERT_NE(device, nullptr) << gpu.key;
    const auto attribute = [&](int number) {
      int value = -1;
      EXPECT_TRUE(device_attribute(*device, number, value)) << number;
      return value;
    };
    EXPECT_EQ(attribute(75), gpu.major) << gpu.key;
    EXPECT_EQ(attribute(76), gpu.minor) << gpu.key;
    EXPECT_EQ(attribute(16), gpu.sms) << gpu.key;
    EXPECT_EQ(attribute(97), gpu.shared) << gpu.key;
    EXPECT_NE(device_keys().find(gpu.key), std::string_view::npos);
  }
  int value = 0;
  EXPECT_FALSE(device_attribute(*find_device("b200"), 0, value));
  EXPECT_FALSE(device_attribute(*find_device("b200"), 9999, value));
  EXPECT_EQ(find_device("k80"), nullptr);
}

TEST(Settings, ComeBackFromTheirText) {
  Settings settings;
  settings.device = "gb10";
  settings.report = "/a folder/with = signs";
  settings.ptx_folder = "/tmp/ptx";
  settings.options.schedule = ptxsim::Schedule::kLazy;
  settings.options.seed = 12345678901;
  settings.options.strict = true;
  settings.options.check_uninitialized = false;
  settings.options.resident_clusters = 7;
  settings.max_clusters = 0;
  const Settings read = settings_of(to_text(settings));
  EXPECT_EQ(to_text(read), to_text(settings));
  EXPECT_EQ(read.report, settings.report);
  EXPECT_EQ(read.ptx_folder, settings.ptx_folder);
  EXPECT_EQ(read.options.schedule, ptxsim::Schedule::kLazy);
}

TEST(Streams, CapturedWorkIsDoneWhenTheGraphIsLaunched) {
  Streams streams;
  Stream* stream = streams.create(0, 0);
  int done = 0;
  const auto work = [&] {
    ++done;
    return kSuccess;
  };
  EXPECT_EQ(streams.issue(stream, work), kSuccess);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(streams.begin_capture(stream), kSuccess);
  EXPECT_EQ(streams.begin_capture(stream), kIllegalState);
  EXPECT_EQ(streams.issue(stream, work), kSuccess);
  EXPECT_EQ(done, 1);
  Graph* graph = nullptr;
  EXPECT_EQ(streams.end_capture(stream, graph), kSuccess);
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->nodes.size(), 1u);
  EXPECT_EQ(streams.end_capture(stream, graph), kIllegalState);
  EXPECT_EQ(streams.begin_capture(nullptr), kStreamCaptureUnsupported);
  EXPECT_EQ(streams.destroy(stream), kSuccess);
  EXPECT_EQ(streams.destroy(stream), kInvalidHandle);
}

}  // namespace
}  // namespace ptxsim_test
