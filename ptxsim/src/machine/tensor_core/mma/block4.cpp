#include "machine/tensor_core/mma/block4.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "machine/tensor_core/mma/truncation.hpp"
#include "machine/vector_clones.hpp"

namespace ptxsim {
namespace {

constexpr int kFractionBits = 35;
constexpr unsigned kMaxRows = Block4Operand::kMaxRows;
constexpr unsigned kTerms = Block4Operand::kTerms;

constexpr std::array<int16_t, 16> kTwiceE2m1 = {0, 1,  2,  3,  4,  6,  8,  12,
                                                0, -1, -2, -3, -4, -6, -8, -12};

struct Scale {
  double value;
  double exponent;  // of the significand
};

Scale decode_ue8m0(unsigned code) {
  if (code == 0xff) return {std::numeric_limits<double>::quiet_NaN(), 0};
  return {std::ldexp(1.0, static_cast<int>(code) - 127), static_cast<double>(code) - 127};
}

// The sign bit is ignored; 0x7f is NaN.
Scale decode_ue4m3(unsigned code) {
  code &= 0x7f;
  if (code == 0x7f) return {std::numeric_limits<double>::quiet_NaN(), 0};
  const int field = static_cast<int>(code >> 3), fraction = static_cast<int>(code & 7);
  if (code == 0) return {0.0, kZeroExponent};
  const int exponent = field == 0 ? -6 : field - 7;
  return {std::ldexp(field == 0 ? fraction : 8 + fraction, exponent - 3),
          static_cast<double>(exponent)};
}

template <Scale (*kDecode)(unsigned)>
std::array<Scale, 256> table_of() {
  std::array<Scale, 256> table;
  for (unsigned code = 0; code < 256; ++code) table[code] = kDecode(code);
  return table;
}

}  // namespace

Block4Operand::Block4Operand(bool along_rows, unsigned k)
    : along_rows_(along_rows), k_(k), data_(std::make_unique_for_overwrite<Data>()) {}

void Block4Operand::set_row(unsigned row, const uint8_t* codes, bool negate) {
  const unsigned flip = negate ? 8 : 0;
  const unsigned step = along_rows_ ? kMaxRows : 1;
  int16_t* element = data_->element + (along_rows_ ? row : row * k_);
  for (unsigned k = 0; k < k_; k += 2, element += 2 * step) {
    element[0] = kTwiceE2m1[(codes[k / 2] & 15) ^ flip];
    element[step] = kTwiceE2m1[(codes[k / 2] >> 4) ^ flip];
  }
}

void Block4Operand::set_sparse_row(unsigned row, const uint8_t* codes, const uint8_t* places,
                                   bool negate) {
  const unsigned flip = negate ? 8 : 0;
  int16_t* element = data_->element + row * k_;
  std::fill_n(element, k_, int16_t{0});
  for (unsigned k = 0; k < kK; ++k)
    element[places[k]] = kTwiceE2m1[(codes[k / 2] >> 4 * (k % 2) & 15) ^ flip];
}

void Block4Operand::set_scales(unsigned row, const uint8_t* codes, unsigned count, ScaleType type) {
  static const std::array<Scale, 256> kUe8m0 = table_of<decode_ue8m0>();
  static const std::array<Scale, 256> kUe4m3 = table_of<decode_ue4m3>();
  const std::array<Scale, 256>& table = type == ScaleType::kUe8m0 ? kUe8m0 : kUe4m3;
  for (unsigned term = 0; term < kTerms; ++term) {
    const Scale& scale = table[codes[term * count / kTerms]];
    data_->scale[term * kMaxRows + row] = scale.value;
    data_->exponent[term * kMaxRows + row] = scale.exponent;
  }
}

// The inner loops run over the columns n, which lie together in B and in the results.
struct Block4Kernel {
  using Data = Block4Operand::Data;
  static const Data& of(const Block4Operand& operand) { return *operand.data_; }
  static unsigned k_of(const Block4Operand& operand) { return operand.k_; }

  // Dot products of a term's elements, 16 of which are not 0 at most; in quarters. At most 16 * 144
  // in magnitude.
  PTXSIM_VECTOR_CLONES static void dot(const int16_t* a, const int16_t* __restrict b,
                                       unsigned elements, unsigned columns,
                                       int16_t* __restrict sums) {
    std::fill_n(sums, columns, int16_t{0});
    for (unsigned k = 0; k < elements; k += 4) {
      const int16_t a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
      const int16_t* b0 = b + k * kMaxRows;
      const int16_t* b1 = b0 + kMaxRows;
      const int16_t* b2 = b1 + kMaxRows;
      const int16_t* b3 = b2 + kMaxRows;
      for (unsigned n = 0; n < columns; ++n) {
        const int16_t first = static_cast<int16_t>(static_cast<int16_t>(a0 * b0[n]) +
                                                   static_cast<int16_t>(a1 * b1[n]));
        const int16_t second = static_cast<int16_t>(static_cast<int16_t>(a2 * b2[n]) +
                                                    static_cast<int16_t>(a3 * b3[n]));
        sums[n] = static_cast<int16_t>(sums[n] + first + second);
      }
    }
  }

  // Indices of the width of an address: with 32 bits, whose sums may wrap, nothing is vectorised.
  PTXSIM_VECTOR_CLONES static void add_exact(const int16_t* __restrict dots, const double* scale_a,
                                             const double* exponent_a,
                                             const double* __restrict scale_b,
                                             const double* __restrict exponent_b, unsigned columns,
                                             bool accumulate, uint32_t* __restrict cells) {
    const uint32_t keep = accumulate ? 0xffffffffu : 0u;
    for (size_t n = 0; n < columns; ++n) {
      const uint32_t input = cells[n] & keep;
      double largest = exponent_of_float(input);
      for (size_t t = 0; t < kTerms; ++t) {
        const double exponent = exponent_a[t] + exponent_b[t * kMaxRows + n];
        largest = exponent > largest ? exponent : largest;
      }
      const double units = power_of_two(kFractionBits - largest);
      double sum = 0.0 + std::trunc(static_cast<double>(std::bit_cast<float>(input)) * units);
      for (size_t t = 0; t < kTerms; ++t) {
        const double term =
            static_cast<double>(dots[t * kMaxRows + n]) * scale_a[t] * scale_b[t * kMaxRows + n];
        sum += std::trunc(term * units);
      }
      cells[n] = float_toward_zero(sum * power_of_two(largest - kFractionBits));
    }
  }

  PTXSIM_VECTOR_CLONES static void add_rounded(const int16_t* __restrict dots,
                                               const double* scale_a,
                                               const double* __restrict scale_b, unsigned columns,
                                               bool accumulate, uint32_t* __restrict cells) {
    for (size_t n = 0; n < columns; ++n) {
      float sum = accumulate ? std::bit_cast<float>(cells[n]) : 0.0f;
      for (size_t t = 0; t < kTerms; ++t)
        sum += static_cast<float>(static_cast<double>(dots[t * kMaxRows + n]) * scale_a[t] *
                                  scale_b[t * kMaxRows + n]);
      cells[n] = std::bit_cast<uint32_t>(sum);
    }
  }
};

void block4_row(const Block4Operand& a, unsigned row, const Block4Operand& b, unsigned columns,
                bool accumulate, bool exact, uint32_t* cells) {
  const auto& data_a = Block4Kernel::of(a);
  const auto& data_b = Block4Kernel::of(b);
  const unsigned k = Block4Kernel::k_of(a), elements = k / kTerms;
  alignas(64) int16_t dots[kTerms * kMaxRows];
  double scale_a[kTerms], exponent_a[kTerms];
  for (unsigned t = 0; t < kTerms; ++t) {
    Block4Kernel::dot(data_a.element + row * k + t * elements,
                      data_b.element + t * elements * kMaxRows, elements, columns,
                      dots + t * kMaxRows);
    // Elements are stored doubled, so the dot products are in quarters.
    scale_a[t] = 0.25 * data_a.scale[t * kMaxRows + row];
    exponent_a[t] = data_a.exponent[t * kMaxRows + row];
  }
  if (exact)
    Block4Kernel::add_exact(dots, scale_a, exponent_a, data_b.scale, data_b.exponent, columns,
                            accumulate, cells);
  else
    Block4Kernel::add_rounded(dots, scale_a, data_b.scale, columns, accumulate, cells);
}

}  // namespace ptxsim
