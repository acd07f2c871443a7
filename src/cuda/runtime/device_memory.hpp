// Memory of the GPU, and waiting for it. No CUDA header is needed to use this.
#pragma once

#include <cstdint>
#include <memory>

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

// Owned bytes in device memory, aligned to 256. Move-only.
class DeviceMemory {
 public:
  DeviceMemory() noexcept = default;
  // Not initialised. `argument` names what is to lie there. 0 bytes: null, no allocation.
  static Expected<DeviceMemory> allocate(int64_t bytes, const char* argument);

  uint8_t* data() noexcept { return data_.get(); }
  const uint8_t* data() const noexcept { return data_.get(); }
  int64_t size() const noexcept { return size_; }

  // Gives the memory away; free() takes it back.
  uint8_t* release() noexcept {
    size_ = 0;
    return data_.release();
  }
  static void free(void* memory) noexcept;

  // size() bytes from or to host memory; returns when they are there.
  Status upload(const void* from);
  Status download(void* to) const;

 private:
  struct Free {
    void operator()(uint8_t* pointer) const noexcept { free(pointer); }
  };
  std::unique_ptr<uint8_t, Free> data_;
  int64_t size_ = 0;
};

// Waits until all work on `stream` (a cudaStream_t; null: the default one) is done. An error is one
// of that work.
Status synchronize(void* stream);

}  // namespace dualgemm::cuda
