// ldmatrix, stmatrix, movmatrix (PTX ISA 9.0, "Warp-level matrix load instruction: ldmatrix",
// "Warp-level matrix store instruction: stmatrix", "Warp-level matrix transpose instruction:
// movmatrix").
//
// A matrix has rows of 16 bytes in shared memory; lane 8 i + r (16 i + r for m16n16) gives the
// address of row r of matrix i. Where the bytes of register j of lane t come from:
//   m8n8 b16          row t/4, elements 2 (t%4) and 2 (t%4) + 1
//   m8n8 b16 .trans   rows 2 (t%4) and 2 (t%4) + 1, element t/4
//   m16n16 b8 .trans  two registers, h = 0, 1: rows 4 (t%4) + 2 h + (0, 1, 0, 1), elements
//                     t/4 + (0, 0, 8, 8)
//   m16n8 b8 .trans   (stmatrix: 8 rows of 16) rows 2 (t%4) + (0, 1, 0, 1), elements
//                     t/4 + (0, 0, 8, 8)
//   m8n16 b8          row t/4, elements 4 (t%4) + (0, 1, 2, 3)
// A row of .b6x16_p32 has 16 elements of 6 bits and 32 unused bits, one of .b4x16_p64 16
// elements of 4 bits and 64 bits; each element goes to the low bits of its byte (CUTLASS shifts
// those of e2m1 by 2 before it gives them to mma).
// The b8 forms follow the layouts that CuTe gives for them (copy_traits_sm100); the figures of the
// text are not at hand.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "insn/memory/memory.hpp"
#include "insn/registry.hpp"
#include "insn/traits.hpp"
#include "machine/registers/undefined.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kRowBytes = 16;

enum class Fragment : uint8_t { kHalf, kHalfTransposed, kByteTransposed16, kByteTransposed8 };

struct MatrixDetail final : Detail {
  AddressOperand address;
  Fragment fragment = Fragment::kHalf;
  uint32_t matrices = 1;
  uint32_t rows = 8;  // of a matrix, in memory
  uint32_t registers = 1;
  uint32_t element_bits = 8;  // 6 or 4: of elements that become bytes
  std::array<Slot, 4> elements{};
  uint32_t data_bytes() const { return kRowBytes * element_bits / 8; }  // of a row in memory
};

struct BytePlace {
  uint32_t row;     // over all matrices
  uint32_t column;  // in bytes
};

// Byte k of register j of lane t.
BytePlace place_of_byte(Fragment fragment, uint32_t j, uint32_t t, uint32_t k) {
  const uint32_t group = t / 4, in_group = t % 4;
  switch (fragment) {
    case Fragment::kHalf:
      return {8 * j + group, 4 * in_group + k};
    case Fragment::kHalfTransposed:
      return {8 * j + 2 * in_group + k / 2, 2 * group + k % 2};
    case Fragment::kByteTransposed16:
      return {16 * (j / 2) + 4 * in_group + 2 * (j % 2) + k % 2, group + 8 * (k / 2)};
    default:
      return {8 * j + 2 * in_group + k % 2, group + 8 * (k / 2)};
  }
}

// 16 elements, side by side from the low bits on, to 16 bytes.
void widen(const std::byte* from, uint32_t bits, std::byte* to) {
  if (bits == 8) {
    std::memcpy(to, from, kRowBytes);
    return;
  }
  uint64_t words[2] = {};
  std::memcpy(words, from, kRowBytes * bits / 8);
  for (uint32_t i = 0; i < kRowBytes; ++i) {
    const uint32_t first = i * bits;
    uint64_t value = words[first / 64] >> (first % 64);
    if (first % 64 + bits > 64) value |= words[1] << (64 - first % 64);
    to[i] = static_cast<std::byte>(value & ((1u << bits) - 1));
  }
}

using Rows = std::array<std::byte, kWarpSize * kRowBytes>;

MemoryAt row_at(const Execution& x, const MatrixDetail& a, uint32_t row) {
  const int lane = static_cast<int>(row);
  const MemoryAt at = locate(x, a.address.space, a.address.at(x, lane), kRowBytes, kRowBytes, lane);
  if (at.space != Space::kShared)
    x.fault(fmt::format("the address of row {} is not in shared memory", row), lane);
  return at;
}

// Bytes of the rows, a bit each, that are unwritten or not wholly defined.
using UnknownBytes = std::array<uint32_t, kWarpSize>;

void note_unwritten(const Execution& x, const MatrixDetail& a, const UnknownBytes& unwritten) {
  const auto row = static_cast<uint32_t>(
      std::ranges::find_if(unwritten, [](uint32_t bytes) { return bytes != 0; }) -
      unwritten.begin());
  if (row == unwritten.size()) return;
  const std::string read = text_of_read(x, row_at(x, a, row), kRowBytes, unwritten[row]);
  for (uint32_t j = 0; j < a.registers; ++j)
    for (uint32_t t = 0; t < kWarpSize; ++t) {
      uint32_t bytes = 0;
      for (uint32_t k = 0; k < 4; ++k) {
        const BytePlace from = place_of_byte(a.fragment, j, t, k);
        bytes |= (unwritten[from.row] >> from.column & 1) << k;
      }
      if (bytes != 0) note_undefined(x, a.elements[j], static_cast<int>(t), 4, false, bytes, read);
    }
}

Outcome load_matrix(Execution& x, const Insn& insn) {
  const auto& a = static_cast<const MatrixDetail&>(*insn.detail);
  Rows rows;
  UnknownBytes unwritten{};
  for (uint32_t row = 0; row < a.matrices * a.rows; ++row) {
    const int lane = static_cast<int>(row);
    MemoryAt at = row_at(x, a, row);
    if (a.element_bits == 8) at.unwritten = &unwritten[row];
    const std::byte* from = bytes_to_read(x, at, a.data_bytes(), AccessKind::kRead, lane);
    widen(from, a.element_bits, rows.data() + row * kRowBytes);
  }
  for (uint32_t j = 0; j < a.registers; ++j) {
    std::byte* lanes = x.destination<std::byte>(a.elements[j]);
    for (uint32_t t = 0; t < kWarpSize; ++t)
      for (uint32_t k = 0; k < 4; ++k) {
        const BytePlace from = place_of_byte(a.fragment, j, t, k);
        lanes[4 * t + k] = rows[from.row * kRowBytes + from.column];
      }
  }
  note_unwritten(x, a, unwritten);
  return Outcome::kNext;
}

Outcome store_matrix(Execution& x, const Insn& insn) {
  const auto& a = static_cast<const MatrixDetail&>(*insn.detail);
  Rows rows;
  UnknownBytes unknown{};
  for (uint32_t j = 0; j < a.registers; ++j) {
    const std::byte* lanes = x.source<std::byte>(a.elements[j]);
    for (uint32_t t = 0; t < kWarpSize; ++t) {
      const uint32_t bytes = x.warp.undefined == nullptr
                                 ? 0
                                 : undefined_bytes(x, a.elements[j], 4, static_cast<int>(t));
      for (uint32_t k = 0; k < 4; ++k) {
        const BytePlace to = place_of_byte(a.fragment, j, t, k);
        rows[to.row * kRowBytes + to.column] = lanes[4 * t + k];
        unknown[to.row] |= (bytes >> k & 1) << to.column;
      }
    }
  }
  for (uint32_t row = 0; row < a.matrices * a.rows; ++row) {
    const int lane = static_cast<int>(row);
    const std::byte* from = rows.data() + row * kRowBytes;
    if (x.warp.undefined != nullptr) refuse_undefined(x, a.address.base, lane);
    MemoryAt at = row_at(x, a, row);
    at.value = from;
    std::memcpy(bytes_to_write(x, at, kRowBytes, AccessKind::kWrite, lane), from, kRowBytes);
    forget_bytes(x, at, unknown[row]);
  }
  return Outcome::kNext;
}

// Lane t holds elements (t/4, 2 (t%4)) and (t/4, 2 (t%4) + 1) of an 8x8 matrix, before and after.
Outcome transpose(Execution& x, const Insn& insn) {
  const uint16_t* a = x.source<uint16_t>(insn.slot[1]);
  std::array<uint16_t, 2 * kWarpSize> result;  // two elements for each lane: row-major 8x8
  for (uint32_t row = 0; row < 8; ++row)
    for (uint32_t column = 0; column < 8; ++column) result[8 * row + column] = a[8 * column + row];
  std::memcpy(x.destination<uint16_t>(insn.slot[0]), result.data(), sizeof result);
  return Outcome::kNext;
}

// All lanes of the warp take part, also when it is the last one of a CTA and not full. .sync: none
// goes on before all have executed it, as in shfl.sync.
template <Handler kHandler>
Outcome full_warp(Execution& x, const Insn& insn) {
  if (x.mask != 0xffffffffu)
    x.fault(fmt::format("executed by lanes {:08x}; all 32 lanes of the warp must be there (R12)",
                        x.mask));
  const Outcome outcome = kHandler(x, insn);
  x.tell([&](Observer& o) { o.lanes_met(x, x.mask); });
  return outcome;
}

uint32_t take_count(Decode& d) {
  switch (d.modifiers().take_one_of({"x1", "x2", "x4"})) {
    case 0:
      return 1;
    case 1:
      return 2;
    case 2:
      return 4;
    default:
      d.fail("a count is missing: .x1, .x2 or .x4");
  }
}

void take_aligned(Decode& d) {
  if (!d.modifiers().take("sync") || !d.modifiers().take("aligned")) d.fail("needs .sync.aligned");
  d.require_aligned();
}

void take_matrices(Decode& d, bool is_load) {
  auto& m = d.modifiers();
  take_aligned(d);
  auto* a = d.make_detail<MatrixDetail>();
  const int shape =
      is_load ? m.take_one_of({"m8n8", "m16n16", "m8n16"}) : m.take_one_of({"m8n8", "m16n8"});
  if (shape < 0) d.fail(is_load ? "needs .m8n8, .m16n16 or .m8n16" : "needs .m8n8 or .m16n8");
  a->matrices = take_count(d);
  const bool transposed = m.take("trans");
  const bool widens = is_load && shape > 0 && m.take("b8x16");
  if (widens) {
    const int source = m.take_one_of({"b6x16_p32", "b4x16_p64"});
    if (source < 0) d.fail(".b8x16 needs .b6x16_p32 or .b4x16_p64");
    a->element_bits = source == 0 ? 6 : 4;
  } else if (!m.take(shape == 0 ? "b16" : "b8")) {
    d.fail(shape == 0 ? ".m8n8 needs .b16" : "this shape needs .b8");
  }
  a->registers = a->matrices;
  if (shape == 0) {
    a->fragment = transposed ? Fragment::kHalfTransposed : Fragment::kHalf;
  } else if (shape == 2) {
    if (!widens || transposed) d.fail(".m8n16 needs .b8x16 and has no .trans");
    a->fragment = Fragment::kHalf;  // the same places, by bytes
  } else {
    if (!transposed) d.fail("this shape needs .trans");
    a->fragment = is_load ? Fragment::kByteTransposed16 : Fragment::kByteTransposed8;
    if (is_load) {
      if (a->matrices == 4) d.fail(".m16n16 has .x1 and .x2 only");
      a->rows = 16;
      a->registers = 2 * a->matrices;
    }
  }
  const AddressSpace space = take_space(d);
  if (space.space != Space::kGeneric && (space.space != Space::kShared || !space.own_shared_only))
    d.fail("needs .shared, .shared::cta or generic addressing");
  d.expect_operands(2, 2);
  a->address = take_address(d, d.operand(is_load ? 1 : 0), space);
  const auto elements = d.elements(is_load ? 0 : 1);
  if (elements.size() != a->registers)
    d.fail(fmt::format("{} registers; needs {}", elements.size(), a->registers));
  for (uint32_t j = 0; j < a->registers; ++j) {
    a->elements[j] =
        is_load ? d.destination(*elements[j], Type::kB32) : d.source(*elements[j], Type::kB32);
    if (!a->elements[j].present()) d.fail("a register is needed for each part");
  }
}

void decode_ldmatrix(Decode& d) {
  take_matrices(d, true);
  d.insn().execute = full_warp<load_matrix>;
}

void decode_stmatrix(Decode& d) {
  take_matrices(d, false);
  d.insn().execute = full_warp<store_matrix>;
}

void decode_movmatrix(Decode& d) {
  take_aligned(d);
  auto& m = d.modifiers();
  if (!m.take("m8n8") || !m.take("trans") || !m.take("b16"))
    d.fail("movmatrix has the form .sync.aligned.m8n8.trans.b16 only");
  d.expect_operands(2, 2);
  d.insn().slot[0] = d.destination(0, Type::kB32);
  if (!d.insn().slot[0].present()) d.fail("needs a destination register");
  d.insn().slot[1] = d.source(1, Type::kB32);
  d.insn().execute = full_warp<transpose>;
}

constexpr Decoder kDecoders[] = {
    {"ldmatrix", decode_ldmatrix, traits::kLoad},
    {"stmatrix", decode_stmatrix, traits::kStore.with(Trait::kSeesUndefined)},
    {"movmatrix", decode_movmatrix, traits::kComputing}};

}  // namespace

std::span<const Decoder> decoders_matrix_move() { return kDecoders; }

}  // namespace ptxsim
