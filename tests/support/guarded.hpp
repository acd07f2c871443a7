// Buffers that catch what a kernel must not do: canaries before and after, poison inside.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace dualgemm::test {

// 0xFF: NaN as E4M3, fp16, bf16 and fp32, and -6 as E2M1. A poisoned byte that is used shows.
inline constexpr uint8_t kPoison = 0xFF;

// count values of T between two canaries; the first one is 64-byte aligned, plus `misalign` bytes.
// Starts as poison.
template <class T>
class Guarded {
 public:
  explicit Guarded(int64_t count = 0, int64_t misalign = 0, uint8_t fill = kPoison)
      : count_(count),
        misalign_(misalign),
        bytes_(static_cast<uint8_t*>(::operator new(allocated(), kAlign))) {
    std::memset(bytes_, kCanary, allocated());
    this->fill(fill);
  }
  ~Guarded() {
    if (bytes_ == nullptr) return;
    EXPECT_TRUE(intact());
    ::operator delete(bytes_, kAlign);
  }
  Guarded(Guarded&& other) noexcept
      : count_(other.count_),
        misalign_(other.misalign_),
        bytes_(std::exchange(other.bytes_, nullptr)) {}
  Guarded& operator=(Guarded&& other) noexcept {
    std::swap(count_, other.count_);
    std::swap(misalign_, other.misalign_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  T* data() noexcept { return reinterpret_cast<T*>(bytes_ + kMargin + misalign_); }
  const T* data() const noexcept {
    return reinterpret_cast<const T*>(bytes_ + kMargin + misalign_);
  }
  int64_t size() const noexcept { return count_; }
  int64_t size_bytes() const noexcept { return count_ * static_cast<int64_t>(sizeof(T)); }
  T& operator[](int64_t i) noexcept { return data()[i]; }
  const T& operator[](int64_t i) const noexcept { return data()[i]; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + count_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + count_; }

  void fill(uint8_t byte) noexcept { std::memset(data(), byte, static_cast<size_t>(size_bytes())); }
  bool all_bytes(uint8_t byte) const noexcept {
    const auto* bytes = reinterpret_cast<const uint8_t*>(data());
    for (int64_t i = 0; i < size_bytes(); ++i) {
      if (bytes[i] != byte) return false;
    }
    return true;
  }
  // The destructor checks this too; call it to learn of it earlier.
  ::testing::AssertionResult intact() const {
    const uint8_t *first = bytes_ + kMargin + misalign_, *last = first + size_bytes();
    for (const uint8_t* byte = bytes_; byte < bytes_ + allocated(); ++byte) {
      if ((byte < first || byte >= last) && *byte != kCanary) {
        return ::testing::AssertionFailure()
               << "canary overwritten " << (byte - first) << " bytes from the start of a buffer of "
               << size_bytes() << " bytes";
      }
    }
    return ::testing::AssertionSuccess();
  }

 private:
  static constexpr int64_t kMargin = 256;
  static constexpr uint8_t kCanary = 0xC9;
  static constexpr std::align_val_t kAlign{64};
  size_t allocated() const noexcept {
    return static_cast<size_t>(2 * kMargin + misalign_ + size_bytes());
  }

  int64_t count_, misalign_;
  uint8_t* bytes_;
};

}  // namespace dualgemm::test
