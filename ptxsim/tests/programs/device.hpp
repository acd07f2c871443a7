// What all programs beside this share: numbers without a pattern, and memory of the device.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace program {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::printf("failed: %s (%s)\n", what, cudaGetErrorString(cudaGetLastError()));
  std::exit(1);
}

// Numbers without a pattern that a tile could repeat (the finaliser of MurmurHash3).
inline uint32_t scattered(uint32_t i) {
  i = (i ^ i >> 16) * 0x85ebca6bu;
  i = (i ^ i >> 13) * 0xc2b2ae35u;
  return i ^ i >> 16;
}

template <class T>
class OnDevice {
 public:
  explicit OnDevice(size_t count) : count_(count) {
    require(cudaMalloc(&data_, count * sizeof(T)) == cudaSuccess, "cudaMalloc");
  }
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    require(
        cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess,
        "cudaMemcpy");
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  T* data() const { return static_cast<T*>(data_); }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    require(
        cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess,
        "cudaMemcpy");
    return values;
  }

 private:
  size_t count_;
  void* data_ = nullptr;
};

}  // namespace program
