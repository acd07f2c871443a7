// The data of the CPU benchmark: random NVFP4 operands with every code and scales over six octaves
// (zeros would draw less power and so run at a higher clock).
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "core/aligned_bytes.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::bench {

// Zeroed memory on huge pages where the system grants them, as the buffer of the read bandwidth is:
// the ratio compares kernels, not page sizes. Throws std::bad_alloc.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(int64_t size) : size_(size) {
    const int64_t bytes = size * static_cast<int64_t>(sizeof(T));
    Expected<core::AlignedBytes> memory = core::AlignedBytes::allocate(bytes, "benchmark operand");
    if (!memory) throw std::bad_alloc();
    storage_ = *std::move(memory);
    std::memset(storage_.data(), 0, static_cast<size_t>(bytes));
  }

  T* data() { return reinterpret_cast<T*>(storage_.data()); }
  int64_t size() const { return size_; }

 private:
  core::AlignedBytes storage_;
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
  // `weight_sets` copies of Gate and Up, so that runs can take turns and find none in a cache.
  Operands(int64_t n, int64_t k, int64_t max_m, int weight_sets);

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  int64_t weight_bytes() const { return 2 * (n_ * k_ / 2 + n_ * k_ / kSfVec); }
  int weight_sets() const { return static_cast<int>(gate_.size()); }

  Nvfp4Matrix& a() { return a_; }
  Nvfp4Matrix& gate() { return gate_.front(); }
  Nvfp4Matrix& up() { return up_.front(); }
  AlignedArray<uint16_t>& a_f16() { return a_f16_; }

  // Inputs of one run on weight set `set`, A as NVFP4, fp16 or bf16; alphas keep the
  // pre-activations near 1. No output yet.
  Buffers inputs(DataType a_type, int set);

 private:
  int64_t n_, k_;
  Nvfp4Matrix a_;
  AlignedArray<uint16_t> a_f16_, a_bf16_;  // the values of a_, exact in both
  std::vector<Nvfp4Matrix> gate_, up_;
};

}  // namespace dualgemm::bench
