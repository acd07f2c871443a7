// Arrays on the device, random values, and the count of results that differ from the host's.
#pragma once

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : size_(values.size()) {
    cudaMalloc(&data_, size_ * sizeof(T));
    cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  // Never written before a kernel does.
  explicit OnDevice(size_t size) : size_(size) { cudaMalloc(&data_, size_ * sizeof(T)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }

  T* get() { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

inline std::vector<half> normal_halves(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> values;
  std::vector<half> found(size);
  for (half& value : found) value = __float2half(values(random));
  return found;
}

class Comparison {
 public:
  // Whether `found` is within `tolerance` of `want`; NaN is not.
  void add(double found, double want, double tolerance) {
    ++all_;
    if (std::fabs(found - want) <= tolerance) return;
    if (wrong_++ < 5) std::printf("number %zu: %g, must be %g\n", all_ - 1, found, want);
  }
  // What main() returns: 0 if all are right.
  int tell() const {
    std::printf("%zu of %zu are wrong\n", wrong_, all_);
    return wrong_ == 0 && all_ > 0 ? 0 : 1;
  }

 private:
  size_t all_ = 0, wrong_ = 0;
};
