// Memory dealt out in aligned pieces.
#pragma once

#include <cstdint>

#include "core/int_math.hpp"

namespace dualgemm::core {

// Carves aligned pieces off a buffer, or counts what they need where there is none yet (null).
class Arena {
 public:
  // alignment: a power of two. A base that is not at a multiple of it is moved up: such a buffer
  // needs alignment - 1 bytes more than used().
  explicit Arena(void* base, int64_t alignment = 64) noexcept
      : base_(reinterpret_cast<uint8_t*>(
            round_up(static_cast<int64_t>(reinterpret_cast<uintptr_t>(base)), alignment))),
        alignment_(alignment) {}

  template <class T>
  T* take(int64_t count) noexcept {
    const int64_t offset = take_offset(count * static_cast<int64_t>(sizeof(T)));
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + offset);
  }
  // From the (moved) base; for buffers that the host does not see.
  int64_t take_offset(int64_t bytes) noexcept {
    const int64_t offset = used_;
    used_ += round_up(bytes, alignment_);
    return offset;
  }
  int64_t used() const noexcept { return used_; }

 private:
  uint8_t* base_;
  int64_t alignment_;
  int64_t used_ = 0;
};

}  // namespace dualgemm::core
