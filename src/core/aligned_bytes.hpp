// Owned memory at 64-byte alignment, huge pages where the system grants them; failure is a Status.
#pragma once

#include <cstdint>
#include <memory>

#include "dualgemm/status.hpp"

namespace dualgemm::core {

// Move-only.
class AlignedBytes {
 public:
  AlignedBytes() noexcept = default;
  // Not initialised. kOutOfMemory, with `argument` naming what was meant to lie there, when the
  // system refuses, or when `size` exceeds the machine's memory (an overcommitting system would not
  // refuse but kill).
  static Expected<AlignedBytes> allocate(int64_t size, const char* argument);

  uint8_t* data() noexcept { return data_.get(); }
  const uint8_t* data() const noexcept { return data_.get(); }
  int64_t size() const noexcept { return size_; }

 private:
  struct Free {
    void operator()(uint8_t* pointer) const noexcept;
  };
  std::unique_ptr<uint8_t, Free> data_;
  int64_t size_ = 0;
};

}  // namespace dualgemm::core
