// The GPUs that a program may be shown: what the driver says of each.
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxsim::cuda {

struct DeviceModel {
  const char* key;   // as `ptxsim exec --device` takes it
  const char* name;  // as cudaDeviceProp::name has it
  uint32_t major, minor;
  uint32_t sms;
  uint64_t memory_bytes;
  uint32_t l2_bytes;
  uint32_t shared_bytes_per_sm;
  uint32_t threads_per_sm;
  uint32_t blocks_per_sm;
  uint32_t clock_khz;
  uint32_t memory_clock_khz;
  uint32_t memory_bus_bits;
  bool integrated;

  uint32_t architecture() const { return major * 10 + minor; }
  // A block gets at most this much, the reserved KiB not included.
  uint32_t shared_bytes_per_block() const { return shared_bytes_per_sm - 1024; }
};

const DeviceModel* find_device(std::string_view key);
std::string_view device_keys();  // "b200, h200, ..." for messages

// cuDeviceGetAttribute. False: the number is no attribute that is known here.
bool device_attribute(const DeviceModel& device, int attribute, int& value);

}  // namespace ptxsim::cuda
