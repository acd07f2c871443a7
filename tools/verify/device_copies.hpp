// Copies of a host's arrays on the current GPU. Included in builds with CUDA only.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/runtime/device_memory.hpp"

namespace dualgemm::verify {

class DeviceCopies {
 public:
  // *to = a copy of `bytes` bytes on the device; null stays null.
  template <class T>
  Status copy(const T* from, int64_t bytes, const char* name, const T** to) {
    *to = nullptr;
    if (from == nullptr || bytes == 0) return {};
    Expected<cuda::DeviceMemory> memory = cuda::DeviceMemory::allocate(bytes, name);
    if (!memory) return memory.status();
    DUALGEMM_TRY(memory->upload(from));
    *to = reinterpret_cast<const T*>(memory->data());
    copies_.push_back(*std::move(memory));
    return {};
  }
  Status copy(const void* from, int64_t bytes, const char* name, const void** to) {
    return copy(static_cast<const uint8_t*>(from), bytes, name,
                reinterpret_cast<const uint8_t**>(to));
  }

 private:
  std::vector<cuda::DeviceMemory> copies_;
};

}  // namespace dualgemm::verify
