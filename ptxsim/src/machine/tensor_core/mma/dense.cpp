#include "machine/tensor_core/mma/dense.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "machine/tensor_core/mma/truncation.hpp"
#include "machine/vector_clones.hpp"
#include "number/formats.hpp"

namespace ptxsim {
namespace {

struct Decoded {
  double value = 0;
  double exponent = kZeroExponent;
};

// A subnormal has the exponent of the smallest normal of its format.
Decoded decode_as(Format format, int smallest_exponent, uint32_t code) {
  const double value = decode_to_float(format, code);
  if (value == 0) return {value, kZeroExponent};
  if (!std::isfinite(value)) return {value, 0};
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(value) >> 52 & 0x7ff) - 1023;
  return {value, static_cast<double>(std::max(exponent, smallest_exponent))};
}

using ByteTable = std::array<Decoded, 256>;
ByteTable byte_table(Format format) {
  ByteTable table;
  const uint32_t codes = 1u << bits_of(format);
  for (uint32_t code = 0; code < 256; ++code)
    table[code] = decode_as(format, 1 - info_of(format).bias, code & (codes - 1));
  return table;
}

// The two formats that have no table: 16 bits of codes are more than a cache holds beside the
// operands.
Decoded decode_bf16(uint32_t code) {
  const uint32_t magnitude = code & 0x7fff;
  const double value = std::bit_cast<float>(code << 16);
  if (magnitude >= 0x7f80) return {value, 0};
  return {value, exponent_of_float(code << 16)};
}

Decoded decode_f16(uint32_t code) {
  const uint32_t field = code >> 10 & 31, fraction = code & 0x3ff;
  if (field == 0 || field == 31) return decode_as(Format::kF16, -14, code & 0xffff);
  const uint64_t sign = uint64_t{code >> 15 & 1} << 63;
  return {std::bit_cast<double>(sign | uint64_t{field + 1008} << 52 | uint64_t{fraction} << 42),
          static_cast<double>(field) - 15};
}

Decoded decode(Element element, uint32_t code) {
  if (element == Element::kF16) return decode_f16(code);
  if (element == Element::kBf16) return decode_bf16(code);
  static const ByteTable kTables[] = {byte_table(Format::kE4m3), byte_table(Format::kE5m2),
                                      byte_table(Format::kE2m3), byte_table(Format::kE3m2),
                                      byte_table(Format::kE2m1)};
  if (element >= Element::kE4m3)
    return kTables[static_cast<int>(element) - static_cast<int>(Element::kE4m3)][code & 0xff];
  return decode_as(Format::kTf32, -126, code);
}

uint32_t cut_to_13_fraction_bits(uint32_t bits) {
  return (bits & 0x7fffffffu) > 0x7f800000u ? bits : bits & ~((1u << 10) - 1);
}

uint32_t to_f16_cell(double value) {
  if (value != value) return 0x7fff;
  return encode(Format::kF16, value + 0.0, Rounding::kNearestEven);
}

constexpr unsigned kMaxColumns = 256;

// Accumulators of one row as doubles with their exponents.
void load_input(const DenseRules& rules, bool accumulate, const uint32_t* cells, unsigned columns,
                double* value, double* exponent) {
  for (unsigned n = 0; n < columns; ++n) {
    Decoded input;
    if (accumulate && rules.accumulator == Accumulator::kF16) {
      input = decode_as(Format::kF16, -14, cells[n] & 0xffff);
    } else if (accumulate) {
      input = {std::bit_cast<float>(cells[n]), exponent_of_float(cells[n])};
    }
    const bool shifts = rules.input_shift != 0 && input.value != 0;
    value[n] = shifts ? std::ldexp(input.value, -rules.input_shift) : input.value;
    exponent[n] = shifts ? input.exponent - rules.input_shift : input.exponent;
  }
}

void store_result(Accumulator accumulator, const double* sum, unsigned columns, uint32_t* cells) {
  for (unsigned n = 0; n < columns; ++n) {
    if (accumulator == Accumulator::kF16) {
      cells[n] = to_f16_cell(sum[n]);
    } else {
      const uint32_t bits = float_toward_zero(sum[n]);
      cells[n] = accumulator == Accumulator::kF32 ? bits : cut_to_13_fraction_bits(bits);
    }
  }
}

PTXSIM_VECTOR_CLONES void raise_exponents(double a, const double* __restrict b, unsigned columns,
                                          double* __restrict largest) {
  for (unsigned n = 0; n < columns; ++n) {
    const double exponent = a + b[n];
    largest[n] = exponent > largest[n] ? exponent : largest[n];
  }
}

// From largest exponents to units of the last fractional bit, and the sums begun with the input.
PTXSIM_VECTOR_CLONES void begin_sums(int fraction_bits, unsigned columns,
                                     double* __restrict largest, double* __restrict units,
                                     double* __restrict sum) {
  for (unsigned n = 0; n < columns; ++n) {
    units[n] = power_of_two(fraction_bits - largest[n]);
    sum[n] = 0.0 + std::trunc(sum[n] * units[n]);
  }
}

PTXSIM_VECTOR_CLONES void add_products(double a, const double* __restrict b, unsigned columns,
                                       const double* __restrict units, double* __restrict sum) {
  for (unsigned n = 0; n < columns; ++n) sum[n] += std::trunc(a * b[n] * units[n]);
}

PTXSIM_VECTOR_CLONES void end_sums(int fraction_bits, unsigned columns,
                                   const double* __restrict largest, double* __restrict sum) {
  for (unsigned n = 0; n < columns; ++n) sum[n] *= power_of_two(largest[n] - fraction_bits);
}

PTXSIM_VECTOR_CLONES void add_rounded(double a, const double* __restrict b, unsigned columns,
                                      double* __restrict sum) {
  for (unsigned n = 0; n < columns; ++n) sum[n] += a * b[n];
}

void exact_row(const DenseOperand& a, unsigned row, const DenseOperand& b, int fraction_bits,
               double* sum, double* largest) {
  const unsigned columns = b.rows();
  const double* values = a.values() + size_t{row} * a.k();
  const double* exponents = a.exponents() + size_t{row} * a.k();
  const uint8_t* partners = a.partners(row);
  alignas(64) double units[kMaxColumns];
  for (unsigned k = 0; k < a.k(); ++k)
    raise_exponents(exponents[k], b.exponents() + size_t{partners[k]} * columns, columns, largest);
  begin_sums(fraction_bits, columns, largest, units, sum);
  for (unsigned k = 0; k < a.k(); ++k)
    add_products(values[k], b.values() + size_t{partners[k]} * columns, columns, units, sum);
  end_sums(fraction_bits, columns, largest, sum);
}

}  // namespace

DenseOperand::DenseOperand(unsigned rows, unsigned k, bool along_rows)
    : rows_(rows),
      k_(k),
      along_rows_(along_rows),
      values_(size_t{rows} * k),
      exponents_(size_t{rows} * k),
      partners_(rows, k) {}

void DenseOperand::set(unsigned row, unsigned k, Element element, uint32_t code) {
  const Decoded decoded = decode(element, code);
  values_[index(row, k)] = decoded.value;
  exponents_[index(row, k)] = decoded.exponent;
}

void DenseOperand::negate() {
  for (double& value : values_) value = -value;
}

void DenseOperand::scale_row(unsigned row, uint8_t ue8m0) {
  const bool is_nan = ue8m0 == 0xff;
  const int exponent = is_nan ? 0 : int{ue8m0} - 127;
  const double factor =
      is_nan ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, exponent);
  for (unsigned k = 0; k < k_; ++k) {
    values_[index(row, k)] *= factor;
    exponents_[index(row, k)] += exponent;
  }
}

void dense_row(const DenseOperand& a, unsigned row, const DenseOperand& b, const DenseRules& rules,
               bool accumulate, uint32_t* cells) {
  const unsigned columns = b.rows();
  alignas(64) double sum[kMaxColumns], largest[kMaxColumns];
  load_input(rules, accumulate, cells, columns, sum, largest);
  if (rules.exact) {
    exact_row(a, row, b, rules.fraction_bits, sum, largest);
  } else {
    const double* values = a.values() + size_t{row} * a.k();
    for (unsigned k = 0; k < a.k(); ++k)
      add_rounded(values[k], b.values() + size_t{a.partners(row)[k]} * columns, columns, sum);
  }
  store_result(rules.accumulator, sum, columns, cells);
}

IntegerOperand::IntegerOperand(unsigned rows, unsigned k, bool along_rows)
    : rows_(rows), k_(k), along_rows_(along_rows), values_(size_t{rows} * k), partners_(rows, k) {}

void IntegerOperand::set(unsigned row, unsigned k, bool is_signed, uint8_t code) {
  values_[index(row, k)] = is_signed ? static_cast<int8_t>(code) : int32_t{code};
}

void integer_row(const IntegerOperand& a, unsigned row, const IntegerOperand& b, bool saturate,
                 bool accumulate, uint32_t* cells) {
  const unsigned columns = b.rows();
  int32_t dots[kMaxColumns] = {};  // at most 32 * 255 * 255
  for (unsigned k = 0; k < a.k(); ++k) {
    const int32_t factor = a.values()[size_t{row} * a.k() + k];
    const int32_t* values_b = b.values() + size_t{a.partners(row)[k]} * columns;
    for (unsigned n = 0; n < columns; ++n) dots[n] += factor * values_b[n];
  }
  for (unsigned n = 0; n < columns; ++n) {
    const int64_t sum = int64_t{dots[n]} + (accumulate ? static_cast<int32_t>(cells[n]) : 0);
    const int64_t kept = saturate ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX) : sum;
    cells[n] = static_cast<uint32_t>(kept);
  }
}

}  // namespace ptxsim
