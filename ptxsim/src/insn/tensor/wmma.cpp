// Shapes, fragments, wmma.load and wmma.store.
#include "insn/tensor/wmma.hpp"

#include <fmt/format.h>

#include <cstring>

#include "insn/registry.hpp"
#include "insn/tensor/mma_sync.hpp"
#include "insn/traits.hpp"

namespace ptxsim {
namespace {

struct MoveDetail final : Detail {
  WmmaFragment fragment;
  AddressOperand address;
  Slot stride;  // absent: the rows or columns lie one after the other
  uint32_t together =
      1;  // elements, which the stride counts, in one of the fragment's: 4 bits, or one
  bool by_columns = false;  // in memory
};

struct NamedShape {
  std::string_view name;
  WmmaShape shape;
};
constexpr NamedShape kShapes[] = {{"m16n16k16", {16, 16, 16}}, {"m8n32k16", {8, 32, 16}},
                                  {"m32n8k16", {32, 8, 16}},   {"m16n16k8", {16, 16, 8}},
                                  {"m8n8k4", {8, 8, 4}},       {"m8n8k32", {8, 8, 32}},
                                  {"m8n8k128", {8, 8, 128}}};
constexpr uint32_t kFewBitsOfRow =
    128;  // of A and B with elements of 4 bits and of one: both shapes

// Whether A and B may have the type in this shape; each type has its K and M.
bool exists(const WmmaShape& shape, Type type) {
  switch (type) {
    case Type::kF64:
      return shape.k == 4;
    case Type::kTf32:
      return shape.k == 8;
    case Type::kF16:
    case Type::kBf16:
    case Type::kS8:
    case Type::kU8:
      return shape.k == 16;
    case Type::kB32:  // few bits, 32 of them together
      return shape.k == kFewBitsOfRow / 32;
    default:
      return false;
  }
}
bool exists_as_accumulator(const WmmaShape& shape, Type type) {
  switch (type) {
    case Type::kF64:
      return shape.k == 4;
    case Type::kF16:
      return shape.k == 16;
    case Type::kS32:
      return shape.k >= 16;
    default:
      return type == Type::kF32 && shape.k != 4;
  }
}

uint64_t address_of(const Execution& x, const MoveDetail& a, uint32_t lane, uint32_t index) {
  const WmmaFragment& f = a.fragment;
  const auto at = f.element(lane, index);
  const uint64_t packed = a.by_columns ? f.rows : f.columns;
  const uint64_t stride =
      a.stride.present() ? x.source<uint32_t>(a.stride)[x.first_lane()] / a.together : packed;
  const uint64_t element = a.by_columns ? at.column * stride + at.row : at.row * stride + at.column;
  return a.address.at(x, static_cast<int>(lane)) + element * f.element_bytes();
}

MemoryAt locate_element(const Execution& x, const MoveDetail& a, uint32_t lane, uint32_t index) {
  const uint32_t bytes = a.fragment.element_bytes();
  return locate(x, a.address.space, address_of(x, a, lane, index), bytes, bytes,
                static_cast<int>(lane));
}

void check_warp(const Execution& x, const MoveDetail& a) {
  if (x.mask != 0xffffffffu)
    x.fault(
        fmt::format("wmma executed by lanes {:08x}; needs all 32 lanes of a warp (R12)", x.mask));
  x.for_lanes([&](int lane) {
    if (a.address.at(x, lane) != a.address.at(x, x.first_lane()))
      x.refuse_difference("the address of the matrix", lane);
  });
  if (a.stride.present()) x.uniform<uint32_t>(a.stride, "the stride of the matrix");
}

Outcome load(Execution& x, const Insn& insn) {
  const auto& a = static_cast<const MoveDetail&>(*insn.detail);
  check_warp(x, a);
  const uint32_t bytes = a.fragment.element_bytes();
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    for (uint32_t i = 0; i < a.fragment.per_lane(); ++i) {
      const std::byte* from = bytes_to_read(x, locate_element(x, a, lane, i), bytes,
                                            AccessKind::kRead, static_cast<int>(lane));
      for (uint32_t copy = i; copy < a.fragment.places(); copy += a.fragment.per_lane())
        std::memcpy(a.fragment.place(x.registers, lane, copy), from, bytes);
    }
  return Outcome::kNext;
}

Outcome store(Execution& x, const Insn& insn) {
  const auto& a = static_cast<const MoveDetail&>(*insn.detail);
  check_warp(x, a);
  const uint32_t bytes = a.fragment.element_bytes();
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    for (uint32_t i = 0; i < a.fragment.per_lane(); ++i)
      std::memcpy(bytes_to_write(x, locate_element(x, a, lane, i), bytes, AccessKind::kWrite,
                                 static_cast<int>(lane)),
                  a.fragment.place(x.registers, lane, i), bytes);
  return Outcome::kNext;
}

// .s4 .u4 .b1: of A and B, which are loaded as words of 32 bits, in the places that mma.sync of
// these shapes gives them. How many elements a word has; 1: another type.
uint32_t take_few_bits(Decode& d, WmmaMatrix matrix, bool by_columns, WmmaShape& shape) {
  if (matrix == WmmaMatrix::kAccumulator) return 1;
  const int type = d.modifiers().take_one_of({"s4", "u4", "b1"});
  if (type < 0) return 1;
  const uint32_t bits = type == 2 ? 1 : 4;
  if (shape.k * bits != kFewBitsOfRow) d.fail(".s4 and .u4 need .m8n8k32, .b1 needs .m8n8k128");
  if (by_columns != (matrix == WmmaMatrix::kB))
    d.fail("A of 4 bits or one needs .row, B of them .col");
  shape.k = kFewBitsOfRow / 32;
  return 32 / bits;
}

void decode_move(Decode& d, WmmaMatrix matrix, bool is_load) {
  auto* detail = d.make_detail<MoveDetail>();
  WmmaShape shape = take_wmma_shape(d);
  detail->by_columns = take_by_columns(d);
  const AddressSpace space = take_space(d);
  if (space.space != Space::kGeneric && space.space != Space::kGlobal &&
      (space.space != Space::kShared || !space.own_shared_only))
    d.fail("needs .global, .shared, .shared::cta or generic addressing");
  detail->together = take_few_bits(d, matrix, detail->by_columns, shape);
  const Type type = detail->together > 1 ? Type::kB32 : d.modifiers().take_type();
  d.expect_operands(2, 3);
  const bool in_order = matrix != WmmaMatrix::kAccumulator && detail->by_columns;
  detail->fragment = take_wmma_fragment(d, is_load ? 0 : 1, matrix, shape, type, in_order, is_load);
  detail->address = take_address(d, d.operand(is_load ? 1 : 0), space);
  if (d.num_operands() == 3) detail->stride = d.source(2, Type::kU32);
  d.insn().execute = is_load ? load : store;
}

void decode_wmma(Decode& d) {
  Modifiers& m = d.modifiers();
  const int form = m.take_one_of({"load", "store", "mma"});
  if (form < 0) d.fail("wmma needs .load, .store or .mma");
  if (!m.take("sync") || !m.take("aligned")) d.fail("wmma needs .sync.aligned");
  d.require_aligned();
  if (form == 0) return decode_wmma_load(d);
  if (form == 1) return decode_wmma_store(d);
  if (m.has("m8n8k32") || m.has("m8n8k128")) return decode_mma_integer(d);  // the same fragments
  decode_wmma_mma(d);
}

// Its loads are not followed to the use of their results, nor undefined bits through its products.
constexpr Form kForms[] = {{{"load"}, Traits{Trait::kReads}}, {{"store"}, traits::kStore}};
constexpr Decoder kDecoders[] = {{"wmma", decode_wmma, traits::kMultiplication, kForms}};

}  // namespace

std::span<const Decoder> decoders_wmma() { return kDecoders; }

WmmaShape take_wmma_shape(Decode& d) {
  for (const NamedShape& named : kShapes)
    if (d.modifiers().take(named.name)) return named.shape;
  d.fail(
      "wmma needs a shape: .m16n16k16, .m8n32k16, .m32n8k16, .m16n16k8, .m8n8k4, .m8n8k32 or "
      ".m8n8k128");
}

bool take_by_columns(Decode& d) {
  // In written order: .mma has two of them.
  for (size_t i = 0; !d.modifiers().at(i).empty(); ++i) {
    const std::string_view name = d.modifiers().at(i);
    if ((name == "row" || name == "col") && d.modifiers().take(name)) return name == "col";
  }
  d.fail("a layout is missing: .row or .col");
}

WmmaFragment take_wmma_fragment(Decode& d, size_t index, WmmaMatrix matrix, const WmmaShape& shape,
                                Type type, bool by_columns, bool is_destination) {
  const bool is_accumulator = matrix == WmmaMatrix::kAccumulator;
  if (!(is_accumulator ? exists_as_accumulator(shape, type) : exists(shape, type)))
    d.fail(fmt::format("a matrix of .{} with shape .m{}n{}k{} is not known", name_of(type), shape.m,
                       shape.n, shape.k));
  WmmaFragment f;
  f.type = type;
  f.rows = matrix == WmmaMatrix::kB ? shape.k : shape.m;
  f.columns = matrix == WmmaMatrix::kA ? shape.k : shape.n;
  f.by_columns = by_columns;
  f.registers = type == Type::kF16 && !is_accumulator
                    ? 8
                    : f.per_lane() * f.element_bytes() / f.register_bytes();
  const auto elements = d.elements(index);
  if (elements.size() != f.registers)
    d.fail(fmt::format("{} registers; this matrix needs {}", elements.size(), f.registers));
  const Type of_register = f.register_bytes() == 8 ? Type::kB64 : Type::kB32;
  for (uint32_t i = 0; i < f.registers; ++i) {
    f.slots[i] = is_destination ? d.destination(*elements[i], of_register)
                                : d.source(*elements[i], of_register);
    if (!f.slots[i].present() || f.slots[i].is_constant())
      d.fail("a register is needed for each part of a matrix");
  }
  return f;
}

void decode_wmma_load(Decode& d) {
  const int matrix = d.modifiers().take_one_of({"a", "b", "c"});
  if (matrix < 0) d.fail("wmma.load needs .a, .b or .c");
  decode_move(d, static_cast<WmmaMatrix>(matrix), true);
}

void decode_wmma_store(Decode& d) {
  if (!d.modifiers().take("d")) d.fail("wmma.store needs .d");
  decode_move(d, WmmaMatrix::kAccumulator, false);
}

}  // namespace ptxsim
