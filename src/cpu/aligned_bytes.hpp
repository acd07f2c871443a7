// A 64-byte aligned allocation whose failure is a Status.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "dualgemm/status.hpp"

namespace dualgemm::cpu {

class AlignedBytes {
 public:
  Status allocate(int64_t bytes) {
    const int64_t rounded = (bytes + 63) / 64 * 64;
    data_.reset(static_cast<uint8_t*>(std::aligned_alloc(64, static_cast<size_t>(rounded))));
    if (data_ == nullptr && rounded > 0)
      return Status::error(StatusCode::kOutOfMemory, "prepared weights", std::to_string(bytes),
                           "this many bytes could not be allocated");
    size_ = bytes;
    return {};
  }
  uint8_t* data() noexcept { return data_.get(); }
  const uint8_t* data() const noexcept { return data_.get(); }
  int64_t size() const noexcept { return size_; }

 private:
  struct Free {
    void operator()(uint8_t* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<uint8_t, Free> data_;
  int64_t size_ = 0;
};

}  // namespace dualgemm::cpu
