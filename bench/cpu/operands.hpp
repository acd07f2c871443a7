// The data of the CPU benchmark: random NVFP4 operands with every code and scales over six octaves
// (zeros would draw less power and so run at a higher clock).
#pragma once

#include <cstdint>
#include <vector>

#include "dualgemm/dualgemm.hpp"

namespace dualgemm::bench {

// Memory that no vector instruction straddles a cache line in; zeroed.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(int64_t size)
      : storage_(static_cast<size_t>(size) * sizeof(T) + kAlignment), size_(size) {}
  AlignedArray(AlignedArray&&) noexcept = default;  // a copy would start at another remainder
  AlignedArray& operator=(AlignedArray&&) noexcept = default;

  T* data() {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    return reinterpret_cast<T*>((address + kAlignment - 1) / kAlignment * kAlignment);
  }
  int64_t size() const { return size_; }

 private:
  static constexpr uintptr_t kAlignment = 64;
  std::vector<unsigned char> storage_;
  int64_t size_ = 0;
};

// codes[rows][cols/2] and scales[rows][cols/16]
struct Nvfp4Matrix {
  int64_t rows = 0, cols = 0;
  AlignedArray<uint8_t> codes, scales;

  // The same for the same seed, whatever the thread count.
  static Nvfp4Matrix random(int64_t rows, int64_t cols, uint64_t seed);
  Expected<AlignedArray<float>> decoded();
};

class Operands {
 public:
  // `weight_sets` copies of gate and up, so that runs can take turns and find none in a cache.
  Operands(int64_t n, int64_t k, int64_t max_m, int weight_sets);

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  int64_t weight_bytes() const { return 2 * (n_ * k_ / 2 + n_ * k_ / kSfVec); }
  int weight_sets() const { return static_cast<int>(gate_.size()); }

  Nvfp4Matrix& a() { return a_; }
  Nvfp4Matrix& gate() { return gate_.front(); }
  Nvfp4Matrix& up() { return up_.front(); }
  AlignedArray<uint16_t>& a_f16() { return a_f16_; }

  // Inputs of one run on weight set `set`; alphas keep the pre-activations near 1. No output yet.
  Buffers inputs(DataType a_type, int set);

 private:
  int64_t n_, k_;
  Nvfp4Matrix a_;
  AlignedArray<uint16_t> a_f16_;
  std::vector<Nvfp4Matrix> gate_, up_;
};

}  // namespace dualgemm::bench
