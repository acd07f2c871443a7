// Fragments and products of mma.sync. With e elements in a 32-bit register (1, 2, 4 or 8),
// g = lane / 4, t = lane % 4:
//   A            register j, element i: row g + 8 * (j % 2), k = e * t + i + 4 * e * (j / 2)
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

#include "ptxsim/insn/tensor/mma_sync.hpp"
#include "ptxsim/machine/execution.hpp"

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

// The columns of K of both operands for which `position` does not give -1, in the places it gives.
template <class Position>
void multiply_part(const Execution& x, const MmaSyncDetail& detail, uint32_t k_count,
                   Position&& position, uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  DenseOperand a(kMmaRows, k_count, false), b(kMmaColumns, k_count, true);
  const auto fill = [&](DenseOperand& operand, bool is_a, Element element) {
    for_elements(x, detail, is_a, [&](uint32_t row, uint32_t k, uint32_t container) {
      const int at = position(k);
      if (at >= 0)
        operand.set(row, static_cast<uint32_t>(at), element, code_of(container, element));
    });
  };
  fill(a, true, detail.a_type);
  fill(b, false, detail.b_type);
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

// mma.sync of FP8 and K = 32 on sm_90, which has FP8 units for wgmma only: ptxas converts to F16
// and multiplies the first two of each register's four elements, adds the product of the other two,
// and then adds C with an FP32 addition (read from the machine code that CUDA 13.0 makes for
// sm_90a, and equal to an H200's bits; another ptxas may choose another order).
void multiply_as_halves(const Execution& x, const MmaSyncDetail& detail,
                        uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  uint32_t product[kMmaRows][kMmaColumns] = {};
  for (uint32_t half = 0; half < 2; ++half)
    multiply_part(
        x, detail, detail.k / 2,
        [&](uint32_t k) { return k % 4 / 2 == half ? static_cast<int>(k / 4 * 2 + k % 2) : -1; },
        product);
  for (uint32_t row = 0; row < kMmaRows; ++row)
    for (uint32_t n = 0; n < kMmaColumns; ++n)
      cells[row][n] = std::bit_cast<uint32_t>(std::bit_cast<float>(product[row][n]) +
                                              std::bit_cast<float>(cells[row][n]));
}

void multiply_dense(const Execution& x, const MmaSyncDetail& detail,
                    uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  const bool fp8_of_sm90 = detail.container_bits == 8 && !detail.kind_f8f6f4;
  if (fp8_of_sm90 && detail.k == 32 && detail.rules.accumulator == Accumulator::kF32)
    return multiply_as_halves(x, detail, cells);
  multiply_part(
      x, detail, detail.k, [](uint32_t k) { return static_cast<int>(k); }, cells);
}

void multiply_integer(const Execution& x, const MmaSyncDetail& detail,
                      uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  IntegerOperand a(kMmaRows, detail.k, false), b(kMmaColumns, detail.k, true);
  for_elements(x, detail, true, [&](uint32_t row, uint32_t k, uint32_t c) {
    a.set(row, k, detail.a_signed, static_cast<uint8_t>(c));
  });
  for_elements(x, detail, false, [&](uint32_t row, uint32_t k, uint32_t c) {
    b.set(row, k, detail.b_signed, static_cast<uint8_t>(c));
  });
  for (uint32_t row = 0; row < kMmaRows; ++row)
    integer_row(a, row, b, detail.saturate, true, cells[row]);
}

void multiply_block4(const Execution& x, const MmaSyncDetail& detail,
                     uint32_t (&cells)[kMmaRows][kMmaColumns]) {
  Block4Operand a(false), b(true);
  const auto fill = [&](Block4Operand& operand, bool is_a, uint32_t rows) {
    uint8_t codes[kMmaRows][Block4Operand::kK / 2] = {};
    for_elements(x, detail, is_a, [&](uint32_t row, uint32_t k, uint32_t code) {
      codes[row][k / 2] |= static_cast<uint8_t>(code << (4 * (k % 2)));
    });
    for (uint32_t row = 0; row < rows; ++row) {
      operand.set_row(row, codes[row], false);
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
