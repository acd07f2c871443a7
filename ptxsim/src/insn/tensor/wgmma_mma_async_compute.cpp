// What wgmma.mma_async computes: fragments of registers, matrices in shared memory, and the
// product. Layouts: PTX ISA 9.0, "Register Fragments for wgmma.mma_async" and "Shared Memory Matrix
// Layout".
#include <cstring>
#include <type_traits>

#include "insn/tensor/wgmma.hpp"

namespace ptxsim {
namespace {

template <class Operand>
void set(Operand& operand, const WgmmaDetail& detail, bool is_a, uint32_t row, uint32_t k,
         uint32_t code) {
  if constexpr (std::is_same_v<Operand, IntegerOperand>)
    operand.set(row, k, is_a ? detail.a_signed : detail.b_signed, static_cast<uint8_t>(code));
  else
    operand.set(row, k, is_a ? detail.a_type : detail.b_type, code);
}

template <class Operand>
void read_shared(Cta& cta, const WgmmaDetail& detail, const SmemDescriptor& d, bool is_a,
                 uint32_t rows, Operand& operand) {
  const uint32_t bytes = kWgmmaKBytes / detail.stored_k(), together = 16 / bytes;
  const bool mn_major = is_a ? detail.a_mn_major : detail.b_mn_major;
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t k = 0; k < operand.k(); ++k) {
      const uint32_t at = mn_major ? mn_major_chunk(d, row / together, k) + row % together * bytes
                                   : k_major_chunk(d, row, k / together) + k % together * bytes;
      uint32_t code = 0;
      std::memcpy(&code, cta.shared.at(at), bytes);
      set(operand, detail, is_a, row, k, code);
    }
}

// Register j of a lane holds row lane/4 + 8*(j%2) of its warp's 16, and 4 bytes of K: chunk lane%4
// + 4*(j/2).
template <class Operand>
void read_registers(const WgmmaOperation& operation, Operand& operand) {
  const WgmmaDetail& detail = *operation.detail;
  const uint32_t bytes = kWgmmaKBytes / detail.stored_k(), together = 4 / bytes;
  for (uint32_t warp = 0; warp < kWarpgroupWarps; ++warp)
    for (uint32_t j = 0; j < 4; ++j) {
      const std::byte* file = operation.registers[warp] + detail.a[j].at;
      for (uint32_t lane = 0; lane < kWarpSize; ++lane)
        for (uint32_t i = 0; i < together; ++i) {
          uint32_t code = 0;
          std::memcpy(&code, file + 4 * lane + i * bytes, bytes);
          const uint32_t row = 16 * warp + lane / 4 + 8 * (j % 2);
          set(operand, detail, true, row, together * (lane % 4 + 4 * (j / 2)) + i, code);
        }
    }
}

// Cell (row, column) of D: calls f(register index, lane, which half of an f16 pair).
template <class F>
void for_cells(uint32_t row, uint32_t n, bool pairs, F&& f) {
  for (uint32_t column = 0; column < n; ++column) {
    const uint32_t lane = row % 8 * 4 + column % 8 / 2;
    const uint32_t i = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
    f(column, pairs ? i / 2 : i, lane, i % 2);
  }
}

template <class Operand, class MultiplyRow>
void multiply(Cta& cta, const WgmmaOperation& operation, MultiplyRow&& multiply_row) {
  const WgmmaDetail& detail = *operation.detail;
  Operand a(kWgmmaRows, detail.stored_k(), false), b(detail.n, detail.k, true);
  if (detail.a.empty())
    read_shared(cta, detail, operation.a, true, kWgmmaRows, a);
  else
    read_registers(operation, a);
  if (detail.sparse.present())
    for (uint32_t row = 0; row < kWgmmaRows; ++row)
      pair_row(a, row, detail.sparse, operation.metadata[row / 16].data(), row % 16);
  read_shared(cta, detail, operation.b, false, detail.n, b);
  if constexpr (std::is_same_v<Operand, DenseOperand>) {
    if (detail.negate_a) a.negate();
    if (detail.negate_b) b.negate();
  }
  const bool pairs = detail.rules.accumulator == Accumulator::kF16 && !detail.integer;
  for (uint32_t row = 0; row < kWgmmaRows; ++row) {
    std::byte* file = operation.registers[row / 16];
    uint32_t cells[256] = {};
    const auto address = [&](uint32_t r, uint32_t lane, uint32_t half) {
      return file + detail.d[r].at + 4 * lane + (pairs ? 2 * half : 0);
    };
    for_cells(row, detail.n, pairs, [&](uint32_t column, uint32_t r, uint32_t lane, uint32_t half) {
      if (detail.d[r].present()) std::memcpy(&cells[column], address(r, lane, half), pairs ? 2 : 4);
    });
    multiply_row(a, row, b, cells);
    for_cells(row, detail.n, pairs, [&](uint32_t column, uint32_t r, uint32_t lane, uint32_t half) {
      if (detail.d[r].present()) std::memcpy(address(r, lane, half), &cells[column], pairs ? 2 : 4);
    });
  }
}

}  // namespace

void compute(Cta& cta, const WgmmaOperation& operation, bool exact) {
  const WgmmaDetail& detail = *operation.detail;
  if (detail.integer) {
    multiply<IntegerOperand>(cta, operation,
                             [&](const auto& a, uint32_t row, const auto& b, uint32_t* cells) {
                               integer_row(a, row, b, detail.saturate, operation.accumulate, cells);
                             });
    return;
  }
  DenseRules rules = detail.rules;
  rules.exact = exact;
  multiply<DenseOperand>(cta, operation,
                         [&](const auto& a, uint32_t row, const auto& b, uint32_t* cells) {
                           dense_row(a, row, b, rules, operation.accumulate, cells);
                         });
}

}  // namespace ptxsim
