// Operands of an NVFP4 GEMM, from a seed, and the product in double: the expected result, by simple
// code of its own.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "launch_record.hpp"

namespace cutlass_case {

inline constexpr int kBlock = 16;  // elements of one scale

// exact: scales 1/2, 1 and 2, so that every sum is exact in FP32 in any order.
// range: every UE4M3 code but NaN, zero and subnormals among them.
enum class Scales { kExact, kRange };

inline double decode_e2m1(unsigned code) {
  static constexpr double kMagnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8) != 0 ? -kMagnitude[code & 7] : kMagnitude[code & 7];
}

inline double decode_ue4m3(unsigned code) {
  const int exponent = static_cast<int>(code >> 3) & 15;
  const double fraction = (code & 7) / 8.0;
  return exponent == 0 ? std::ldexp(fraction, -6) : std::ldexp(1 + fraction, exponent - 7);
}

// `batches` matrices of rows x k, K-major; rows of `row_bytes` >= k / 2. Scales in tiles of 128
// rows x 4. Padding holds codes and scales like any other: a kernel that used it would be
// seen. (A scale of the padding meets an element that TMA filled with zero, so NaN there would
// reach the sum on hardware too.)
class Nvfp4Operand {
 public:
  Nvfp4Operand(int64_t rows, int64_t k, int64_t batches, int64_t row_bytes, Scales scales,
               std::mt19937_64& random)
      : rows_(rows), k_(k), row_bytes_(row_bytes) {
    codes_.resize(static_cast<size_t>(batches * rows * row_bytes));
    for (uint8_t& pair : codes_) pair = static_cast<uint8_t>(random());
    scales_.resize(static_cast<size_t>(batches * scale_batch_bytes()));
    for (uint8_t& code : scales_) {
      code = static_cast<uint8_t>(scales == Scales::kExact ? 0x30 + 8 * (random() % 3)
                                                           : random() % 0x7f);
    }
  }

  const Bytes& codes() const { return codes_; }
  const Bytes& scales() const { return scales_; }

  double at(int64_t batch, int64_t row, int64_t k) const {
    const uint8_t pair = codes_[static_cast<size_t>((batch * rows_ + row) * row_bytes_ + k / 2)];
    const unsigned code = k % 2 == 0 ? pair & 15 : pair >> 4;
    return decode_e2m1(code) * decode_ue4m3(scales_[scale_offset(batch, row, k / kBlock)]);
  }

 private:
  int64_t rows_, k_, row_bytes_;
  Bytes codes_, scales_;

  int64_t scale_groups() const { return (k_ + 4 * kBlock - 1) / (4 * kBlock); }
  int64_t scale_batch_bytes() const { return (rows_ + 127) / 128 * scale_groups() * 512; }
  size_t scale_offset(int64_t batch, int64_t row, int64_t s) const {
    return static_cast<size_t>(batch * scale_batch_bytes() +
                               ((row / 128) * scale_groups() + s / 4) * 512 + (row % 32) * 16 +
                               (row % 128) / 32 * 4 + s % 4);
  }
};

}  // namespace cutlass_case
