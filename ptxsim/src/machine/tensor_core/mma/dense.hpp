// Matrix products of floating-point operands with one sum per output: tcgen05 kinds f16, tf32,
// f8f6f4 and mxf8f6f4, wgmma, mma.sync. One row of one instruction at a time.
//
// The exact model: the products of one instruction and the accumulator are aligned to the largest
// exponent and cut off at `fraction_bits`; see truncation.hpp. A product's exponent is the sum of
// its factors' exponents. Infinities and NaNs follow IEEE 754; a NaN result has all bits set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/tensor_core/mma/partners.hpp"

namespace ptxsim {

enum class Element : uint8_t { kF16, kBf16, kTf32, kE4m3, kE5m2, kE2m3, kE3m2, kE2m1 };
inline unsigned bits_of(Element element) {  // of a code
  constexpr uint8_t kBits[] = {16, 16, 32, 8, 8, 6, 6, 4};
  return kBits[static_cast<size_t>(element)];
}

// How results are kept: float toward zero; the same with 13 fractional bits (FP8 wgmma); f16 to
// nearest even in the low half of a cell.
enum class Accumulator : uint8_t { kF32, kF32Fraction13, kF16 };

struct DenseRules {
  Accumulator accumulator = Accumulator::kF32;
  int fraction_bits = 25;  // 25 on Hopper and Blackwell, 24 on Ampere, 13 for FP8 wgmma
  bool exact = true;       // false: FP32 products and sums
  int input_shift = 0;     // the accumulator is multiplied by 2^-input_shift first
};

// One operand of one instruction, decoded. A: rows of M, element k of one row beside the next. B:
// rows of N, with `along_rows`, where element k of all rows lies together.
class DenseOperand {
 public:
  DenseOperand(unsigned rows, unsigned k, bool along_rows);
  unsigned rows() const { return rows_; }
  unsigned k() const { return k_; }
  // Codes of 4 and 6 bits are in the low bits of `code`.
  void set(unsigned row, unsigned k, Element element, uint32_t code);
  void negate();
  // Multiplies a row by 2^(ue8m0 - 127); 0xff is NaN.
  void scale_row(unsigned row, uint8_t ue8m0);
  // A sparse: stored element k of the row multiplies element `partner` of B, which has more of
  // them.
  void pair(unsigned row, unsigned k, unsigned partner) { partners_.set(row, k, partner); }
  bool is_zero(unsigned row, unsigned k) const { return values_[index(row, k)] == 0; }
  const double* values() const { return values_.data(); }
  const double* exponents() const { return exponents_.data(); }
  const uint8_t* partners(unsigned row) const { return partners_.of(row); }

 private:
  size_t index(unsigned row, unsigned k) const {
    return along_rows_ ? size_t{k} * rows_ + row : size_t{row} * k_ + k;
  }
  unsigned rows_, k_;
  bool along_rows_;
  std::vector<double> values_;
  std::vector<double> exponents_;  // of the significands
  Partners partners_;
};

// cells[n] = A[row] * B[n] (+ cells[n] when `accumulate`) for all rows n of B; a sparse A gives the
// products of its stored elements alone, as if the others were not there.
void dense_row(const DenseOperand& a, unsigned row, const DenseOperand& b, const DenseRules& rules,
               bool accumulate, uint32_t* cells);

// The same for integers of at most 8 bits with 32-bit sums that wrap around, or saturate when asked
// to.
class IntegerOperand {
 public:
  IntegerOperand(unsigned rows, unsigned k, bool along_rows);
  void set(unsigned row, unsigned k, bool is_signed, uint8_t code);
  void pair(unsigned row, unsigned k, unsigned partner) { partners_.set(row, k, partner); }
  bool is_zero(unsigned row, unsigned k) const { return values_[index(row, k)] == 0; }
  unsigned rows() const { return rows_; }
  unsigned k() const { return k_; }
  const int32_t* values() const { return values_.data(); }
  const uint8_t* partners(unsigned row) const { return partners_.of(row); }

 private:
  size_t index(unsigned row, unsigned k) const {
    return along_rows_ ? size_t{k} * rows_ + row : size_t{row} * k_ + k;
  }
  unsigned rows_, k_;
  bool along_rows_;
  std::vector<int32_t> values_;
  Partners partners_;
};
void integer_row(const IntegerOperand& a, unsigned row, const IntegerOperand& b, bool saturate,
                 bool accumulate, uint32_t* cells);

}  // namespace ptxsim
