// Operands of an F16 GEMM, from a seed.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

#include "launch_record.hpp"

namespace cutlass_case {

// exact: multiples of 1/8 up to 2, whose sums are exact in FP32 in any order.
// range: every finite F16 code below 64, zero and subnormals among them.
enum class Values { kExact, kRange };

inline double decode_f16(unsigned code) {
  const int exponent = static_cast<int>(code >> 10) & 31;
  const double fraction = (code & 1023) / 1024.0;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (code & 0x8000) != 0 ? -magnitude : magnitude;
}

inline unsigned encode_f16_eighths(int eighths) {  // |eighths| <= 16
  unsigned code = eighths < 0 ? 0x8000u : 0u;
  for (unsigned magnitude = 0; magnitude <= 0x4000; magnitude += 0x80) {
    if (decode_f16(magnitude) == std::abs(eighths) / 8.0) return code | magnitude;
  }
  return code;
}

// `batches` matrices of `rows` rows, `row_stride` elements apart. Padding holds values like any
// other.
class F16Operand {
 public:
  F16Operand(int64_t rows, int64_t batches, int64_t row_stride, Values values,
             std::mt19937_64& random)
      : rows_(rows), row_stride_(row_stride) {
    bytes_.resize(static_cast<size_t>(batches * rows * row_stride * 2));
    for (size_t i = 0; i < bytes_.size(); i += 2) {
      const unsigned code =
          values == Values::kExact
              ? encode_f16_eighths(static_cast<int>(random() % 33) - 16)
              : static_cast<unsigned>(random() % 0x5400 + (random() % 2) * 0x8000);
      bytes_[i] = static_cast<uint8_t>(code);
      bytes_[i + 1] = static_cast<uint8_t>(code >> 8);
    }
  }

  const Bytes& bytes() const { return bytes_; }

  double at(int64_t batch, int64_t row, int64_t k) const {
    const auto i = static_cast<size_t>(((batch * rows_ + row) * row_stride_ + k) * 2);
    return decode_f16(bytes_[i] | bytes_[i + 1] << 8u);
  }

 private:
  int64_t rows_, row_stride_;
  Bytes bytes_;
};

}  // namespace cutlass_case
