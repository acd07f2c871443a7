// Fragments and products of mma.sync. With e elements in a 32-bit register (1, 2, 4 or 8),
// g = lane / 4, t = lane % 4:
//   A            register j, element i: row g + 8 * (j % 2), k = e * t + i + 4 * e * (j / 2); of a
//                sparse A k counts the elements that are stored
//   B            register j, element i: column g, k = e * t + i + 4 * e * j
//   C, D         f32 register j: row g + 8 * (j / 2), column 2 * t + j % 2; f16: register j holds
//                two columns of row g + 8 * j
//   scales of A  lane 4 * g + 2 * thread-id for row g, the next lane for row g + 8
//   scales of B  lane 4 * g + thread-id
// (PTX ISA 9.0, "Matrix Fragments for mma.m16n8k16" and its neighbours; "Block Scaling for
// mma.sync").
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "insn/tensor/mma_sync.hpp"
#include "machine/execution.hpp"
#include "number/formats.hpp"

namespace ptxsim {
namespace {

// Codes of 4 and 6 bits lie in bytes: 4 bits in the middle, 6 bits low.
uint32_t code_of(uint32_t container, Element element) {
  switch (bits_of(element)) {
    case 4:
      return container >> 2 & 15;
    case 6:
      return container & 63;
    default:
      return container;
  }
}

// Calls f(row, k, container) for all elements of a fragment; B's "row" is its column.
template <class F>
void for_elements(const Execution& x, const MmaSyncDetail& detail, bool is_a, F&& f) {
  const std::vector<Slot>& slots = is_a ? detail.a : detail.b;
  const uint32_t bits = detail.container_bits, together = 32 / bits;
  const uint32_t mask = bits == 32 ? 0xffffffffu : (1u << bits) - 1;
  for (uint32_t j = 0; j < slots.size(); ++j) {
    const uint32_t* lanes = x.source<uint32_t>(slots[j]);
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      for (uint32_t i = 0; i < together; ++i) {
        const uint32_t row = lane / 4 + (is_a ? 8 * (j % 2) : 0);
        const uint32_t k = together * (lane % 4) + i + 4 * together * (is_a ? j / 2 : j);
        f(row, k, lanes[lane] >> (bits * i) & mask);
      }
  }
}

// The scale bytes of a row, and where they come from.
uint32_t scales_of(const Execution& x, const MmaSyncDetail& detail, bool is_a, uint32_t row) {
  const uint16_t thread = x.source<uint16_t>(is_a ? detail.thread_a : detail.thread_b)[0];
  const uint16_t byte = x.source<uint16_t>(is_a ? detail.byte_a : detail.byte_b)[0];
  if (thread >= (is_a ? 2 : 4) || byte % detail.scales != 0 || byte + detail.scales > 4)
    x.fault(fmt::format(
        "byte-id {} and thread-id {} of the scales of {} do not exist with {} scales a row", byte,
        thread, is_a ? 'A' : 'B', detail.scales));
  const uint32_t lane = is_a ? 4 * (row % 8) + 2 * thread + row / 8 : 4 * row + thread;
  return x.source<uint32_t>(is_a ? detail.sfa : detail.sfb)[lane] >> (8 * byte);
}

// Moves the 16 x 8 accumulators between registers and cells.
void load_c(const Execution& x, const MmaSyncDetail& detail,
            uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  const bool pairs = detail.c.size() == 2;
  for (uint32_t j = 0; j < detail.c.size(); ++j)
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      const uint32_t value = x.source<uint32_t>(detail.c[j])[lane];
      const uint32_t row = lane / 4 + 8 * (pairs ? j : j / 2), column = 2 * (lane % 4);
      if (pairs) {
        cells[row][column] = value & 0xffff;
        cells[row][column + 1] = value >> 16;
      } else {
        cells[row][column + j % 2] = value;
      }
    }
}

void store_d(const Execution& x, const MmaSyncDetail& detail,
             const uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  const bool pairs = detail.d.size() == 2;
  for (uint32_t j = 0; j < detail.d.size(); ++j) {
    if (!detail.d[j].present()) continue;
    uint32_t* lanes = x.destination<uint32_t>(detail.d[j]);
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      const uint32_t row = lane / 4 + 8 * (pairs ? j : j / 2), column = 2 * (lane % 4);
      lanes[lane] = pairs ? (cells[row][column] & 0xffff) | cells[row][column + 1] << 16
                          : cells[row][column + j % 2];
    }
  }
}

template <class Operand>
void pair_sparse(const Execution& x, const MmaSyncDetail& detail, Operand& a, uint32_t parts = 1,
                 uint32_t part = 0) {
  if (!detail.sparse.present()) return;
  const uint32_t* lanes = x.source<uint32_t>(detail.sparse.metadata);
  for (uint32_t row = 0; row < kMmaRows; ++row)
    pair_row(a, row, detail.sparse, lanes, row, parts, part);
}

// Adds the products of all elements that A stores, or of two of every four: the first or the other
// two. A dense B is taken in the same parts; elements of one beside a sparse A are chosen by A.
void multiply_part(const Execution& x, const MmaSyncDetail& detail, uint32_t parts, uint32_t part,
                   uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  const uint32_t parts_of_b = detail.sparse.present() ? 1 : parts;
  DenseOperand a(kMmaRows, detail.stored_k() / parts, false),
      b(kMmaColumns, detail.k / parts_of_b, true);
  const auto fill = [&](DenseOperand& operand, bool is_a, Element element) {
    const bool in_parts = (is_a ? parts : parts_of_b) == 2;
    for_elements(x, detail, is_a, [&](uint32_t row, uint32_t k, uint32_t container) {
      if (in_parts && k % 4 / 2 != part) return;
      operand.set(row, in_parts ? k / 4 * 2 + k % 2 : k, element, code_of(container, element));
    });
  };
  fill(a, true, detail.a_type);
  fill(b, false, detail.b_type);
  pair_sparse(x, detail, a, parts, part);
  if (detail.scales != 0) {
    for (uint32_t row = 0; row < kMmaRows; ++row)
      a.scale_row(row, static_cast<uint8_t>(scales_of(x, detail, true, row)));
    for (uint32_t n = 0; n < kMmaColumns; ++n)
      b.scale_row(n, static_cast<uint8_t>(scales_of(x, detail, false, n)));
  }
  DenseRules rules = detail.rules;
  rules.exact = x.machine.options().mma == MmaMode::kExact;
  for (uint32_t row = 0; row < kMmaRows; ++row) dense_row(a, row, b, rules, true, cells[row]);
}

// mma.sync of FP8 on sm_90, which has FP8 units for wgmma only: ptxas converts to F16 and
// multiplies the first two of each of A's registers' four elements, adds the product of the other
// two in the accumulator's format, and then adds C with an addition of that format (read from the
// machine code that CUDA 13.0 makes for sm_90a, and equal to the bits of an H200 and an H100;
// another ptxas may choose another order).
void multiply_as_halves(const Execution& x, const MmaSyncDetail& detail,
                        uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  const bool is_f16 = detail.rules.accumulator == Accumulator::kF16;
  const auto sum = [is_f16](uint32_t product, uint32_t c) -> uint32_t {
    if (!is_f16)
      return std::bit_cast<uint32_t>(std::bit_cast<float>(product) + std::bit_cast<float>(c));
    return float_to_f16(f16_to_float(static_cast<uint16_t>(product)) +  // exact in a float
                        f16_to_float(static_cast<uint16_t>(c)));
  };
  uint32_t product[kMmaRows][kMmaColumns] = {};
  for (uint32_t half = 0; half < 2; ++half) multiply_part(x, detail, 2, half, product);
  for (uint32_t row = 0; row < kMmaRows; ++row)
    for (uint32_t n = 0; n < kMmaColumns; ++n) cells[row][n] = sum(product[row][n], cells[row][n]);
}

void multiply_dense(const Execution& x, const MmaSyncDetail& detail,
                    uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  const bool is_fp8 = detail.container_bits == 8 && !detail.kind_f8f6f4;
  const bool sm_90_has_it =
      !detail.sparse.present() || detail.rules.accumulator == Accumulator::kF32;
  if (is_fp8 && sm_90_has_it && detail.stored_k() == 32)
    return multiply_as_halves(x, detail, cells);
  multiply_part(x, detail, 1, 0, cells);
}

// In the low bits of a container; of 4 bits extended to 8.
uint8_t integer_code(uint32_t container, uint32_t bits, bool is_signed) {
  const bool is_negative = bits == 4 && is_signed && (container & 8) != 0;
  return static_cast<uint8_t>(container | (is_negative ? 0xf0u : 0u));
}

void multiply_integer(const Execution& x, const MmaSyncDetail& detail,
                      uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  IntegerOperand a(kMmaRows, detail.stored_k(), false), b(kMmaColumns, detail.k, true);
  for_elements(x, detail, true, [&](uint32_t row, uint32_t k, uint32_t c) {
    a.set(row, k, detail.a_signed, integer_code(c, detail.container_bits, detail.a_signed));
  });
  for_elements(x, detail, false, [&](uint32_t row, uint32_t k, uint32_t c) {
    b.set(row, k, detail.b_signed, integer_code(c, detail.container_bits, detail.b_signed));
  });
  pair_sparse(x, detail, a);
  for (uint32_t row = 0; row < kMmaRows; ++row)
    integer_row(a, row, b, detail.saturate, true, cells[row]);
}

void multiply_block4(const Execution& x, const MmaSyncDetail& detail,
                     uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  Block4Operand a(false, detail.k), b(true, detail.k);
  const auto fill = [&](Block4Operand& operand, bool is_a, uint32_t rows) {
    uint8_t codes[kMmaRows][Block4Operand::kSparseK / 2] = {};
    for_elements(x, detail, is_a, [&](uint32_t row, uint32_t k, uint32_t code) {
      codes[row][k / 2] |= static_cast<uint8_t>(code << (4 * (k % 2)));
    });
    for (uint32_t row = 0; row < rows; ++row) {
      if (is_a && detail.sparse.present()) {
        Block4Row places{codes[row]};
        pair_row(places, row, detail.sparse, x.source<uint32_t>(detail.sparse.metadata), row);
        operand.set_sparse_row(row, codes[row], places.places.data(), false);
      } else {
        operand.set_row(row, codes[row], false);
      }
      const uint32_t word = scales_of(x, detail, is_a, row);
      uint8_t scales[4];
      std::memcpy(scales, &word, 4);
      operand.set_scales(row, scales, detail.scales, detail.scale_type);
    }
  };
  fill(a, true, kMmaRows);
  fill(b, false, kMmaColumns);
  const bool exact = x.machine.options().mma == MmaMode::kExact;
  for (uint32_t row = 0; row < kMmaRows; ++row)
    block4_row(a, row, b, kMmaColumns, true, exact, cells[row]);
}

}  // namespace

void compute(Execution& x, const MmaSyncDetail& detail) {
  uint32_t cells[kMmaRows][kMmaColumns] = {};
  load_c(x, detail, cells);
  switch (detail.form) {
    case MmaForm::kDense:
      multiply_dense(x, detail, cells);
      break;
    case MmaForm::kInteger:
      multiply_integer(x, detail, cells);
      break;
    case MmaForm::kBlock4:
      multiply_block4(x, detail, cells);
      break;
  }
  store_d(x, detail, cells);
}

}  // namespace ptxsim
