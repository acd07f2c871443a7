// Loose arrays on the GPU, between margins that must not be written.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <vector>

#include "dualgemm/quantize.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {

inline constexpr ExecutionOptions kOnGpu{.device = DeviceKind::kCuda};

class GpuArrays {
 public:
  void* put(const char*, const void* from, int64_t bytes, int64_t shift, bool) {
    if (bytes == 0) return nullptr;
    arrays_.emplace_back(bytes, shift, from);
    return arrays_.back().data();
  }
  void get(const void* address, void* to, int64_t bytes) {
    if (bytes == 0) return;
    for (GuardedDevice& array : arrays_) {
      if (array.data() != address) continue;
      const std::vector<uint8_t> got = array.download();
      std::memcpy(to, got.data(), got.size());
      return;
    }
    ADD_FAILURE() << "no such array";
  }
  // Looks at all margins.
  ~GpuArrays() {
    for (const GuardedDevice& array : arrays_) array.check_margins();
  }
  GpuArrays() = default;
  GpuArrays(const GpuArrays&) = delete;
  GpuArrays& operator=(const GpuArrays&) = delete;

 protected:
  static ::testing::AssertionResult done(const Status& status) {
    if (!status.ok()) return ::testing::AssertionFailure() << status.message();
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) return ::testing::AssertionFailure() << cudaGetErrorString(error);
    return ::testing::AssertionSuccess();
  }

 private:
  std::deque<GuardedDevice> arrays_;
};

}  // namespace dualgemm::test
