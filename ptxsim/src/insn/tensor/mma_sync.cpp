// Decoding of mma.sync.
#include "insn/tensor/mma_sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "insn/registry.hpp"
#include "insn/traits.hpp"
#include "machine/execution.hpp"

namespace ptxsim {
namespace {

Outcome execute(Execution& x, const Insn& insn) {
  if (x.mask != 0xffffffffu)
    x.fault(fmt::format("mma.sync executed by lanes {:08x}; needs all 32 lanes of a warp (R12)",
                        x.mask));
  const auto& detail = static_cast<const MmaSyncDetail&>(*insn.detail);
  compute(x, detail);
  Stats& stats = x.machine.stats();
  ++stats.mma_instructions;
  stats.mma_multiply_adds += uint64_t{kMmaRows} * kMmaColumns * detail.stored_k();
  return Outcome::kNext;
}

struct OperandType {
  Type type;
  Element element;
  uint32_t bits;
};
constexpr OperandType kOperandTypes[] = {
    {Type::kF16, Element::kF16, 16},   {Type::kBf16, Element::kBf16, 16},
    {Type::kTf32, Element::kTf32, 32}, {Type::kE4m3, Element::kE4m3, 8},
    {Type::kE5m2, Element::kE5m2, 8},  {Type::kE3m2, Element::kE3m2, 8},
    {Type::kE2m3, Element::kE2m3, 8},  {Type::kE2m1, Element::kE2m1, 8}};

const OperandType& operand_type(Decode& d, Type type) {
  const auto found = std::find_if(std::begin(kOperandTypes), std::end(kOperandTypes),
                                  [&](const OperandType& t) { return t.type == type; });
  if (found == std::end(kOperandTypes))
    d.fail(fmt::format("mma.sync with operands of type .{} is not modelled", name_of(type)));
  return *found;
}

void take_shape(Decode& d, MmaSyncDetail& detail) {
  const std::optional<std::string> text = d.modifiers().take_prefix("m16n8k");
  if (!text) d.fail("mma.sync needs a shape .m16n8kK; others are not modelled");
  if (std::from_chars(text->data(), text->data() + text->size(), detail.k).ptr !=
      text->data() + text->size())
    d.fail(fmt::format("shape .m16n8k{} is not known", *text));
  if (!d.modifiers().take("row") || !d.modifiers().take("col")) d.fail("mma.sync needs .row.col");
}

// Kind and number of scales for a row of a block-scaled form.
void take_scaling(Decode& d, MmaSyncDetail& detail, int kind) {
  Modifiers& m = d.modifiers();
  const bool scaled = m.take("block_scale");
  const int vec = m.take_one_of({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X"});
  if (scaled != (kind > 0))
    d.fail(
        "block_scale belongs to kind::mxf8f6f4, kind::mxf4 and kind::mxf4nvf4, and must be there");
  if (!scaled) return;
  static constexpr uint32_t kDefault[] = {0, 1, 2, 0};
  detail.scales = vec < 0 ? kDefault[kind] : 1u << vec;
  const bool legal = kind == 1   ? detail.scales == 1
                     : kind == 2 ? detail.scales == 2
                                 : detail.scales == 2 || detail.scales == 4;
  if (!legal) d.fail("this scale_vec does not exist for this kind");
  if (kind >= 2) detail.form = MmaForm::kBlock4;
}

void set_integers(MmaSyncDetail& detail, uint32_t bits, bool a_signed, bool b_signed) {
  detail.form = MmaForm::kInteger;
  detail.container_bits = bits;
  detail.a_signed = a_signed;
  detail.b_signed = b_signed;
}

// Takes .s32.s4.u4.s32 and the like, for sparse matrices.
void take_4_bit_types(Decode& d, MmaSyncDetail& detail) {
  Modifiers& m = d.modifiers();
  const Type result = m.take_type();
  const IntegerType &a = take_integer_element(d), &b = take_integer_element(d);
  if (result != Type::kS32 || m.take_type() != Type::kS32 || a.bits != 4 || b.bits != 4)
    d.fail("mma.sp of 4-bit integers needs .s32 for C and D, and A and B of .s4 or .u4");
  set_integers(detail, 4, a.is_signed, b.is_signed);
  detail.saturate = m.take("satfinite");
}

void take_types(Decode& d, MmaSyncDetail& detail) {
  Modifiers& m = d.modifiers();
  if (m.has("s4") || m.has("u4")) return take_4_bit_types(d, detail);
  const Type result = m.take_type(), a = m.take_type(), b = m.take_type(), c = m.take_type();
  if (c != result)
    d.fail(fmt::format("D is .{} and C is .{}; must be the same", name_of(result), name_of(c)));
  if (detail.scales != 0) {
    const Type scale = m.take_type();
    if (scale != Type::kUe8m0 && scale != Type::kUe4m3) d.fail("scales must be .ue8m0 or .ue4m3");
    detail.scale_type = scale == Type::kUe4m3 ? ScaleType::kUe4m3 : ScaleType::kUe8m0;
    if (scale == Type::kUe4m3 && detail.scales != 4)
      d.fail("scales of type .ue4m3 need scale_vec::4X");
  }
  const auto is_8 = [](Type t) { return t == Type::kS8 || t == Type::kU8; };
  if (is_8(a) && is_8(b) && result == Type::kS32) {
    set_integers(detail, 8, a == Type::kS8, b == Type::kS8);
    detail.saturate = m.take("satfinite");
    return;
  }
  const OperandType& type_a = operand_type(d, a);
  const OperandType& type_b = operand_type(d, b);
  if (type_a.bits != type_b.bits || (type_a.bits != 8 && a != b))
    d.fail("A and B must have the same type");
  if (result != Type::kF32 && !(result == Type::kF16 && type_a.bits <= 16 && a != Type::kBf16))
    d.fail(
        fmt::format("mma.sync of .{}.{}.{} is not known", name_of(result), name_of(a), name_of(b)));
  detail.a_type = type_a.element;
  detail.b_type = type_b.element;
  detail.container_bits = detail.form == MmaForm::kBlock4 ? 4 : type_a.bits;
  if (detail.form == MmaForm::kBlock4 && (a != Type::kE2m1 || b != Type::kE2m1))
    d.fail("this kind needs .e2m1 operands");
  if (result == Type::kF16) detail.rules.accumulator = Accumulator::kF16;
}

std::vector<Slot> registers(Decode& d, size_t index, size_t count, bool is_destination,
                            const char* name) {
  std::vector<Slot> slots;
  const std::vector<const Operand*> elements = d.elements(index);
  if (elements.size() != count)
    d.fail(fmt::format("{} has {} registers; needs {}", name, elements.size(), count));
  for (const Operand* e : elements)
    slots.push_back(is_destination ? d.destination(*e, Type::kB32) : d.source(*e, Type::kB32));
  return slots;
}

// sf or {sf}, {byte id, thread id}
void take_scale_operands(Decode& d, size_t index, Slot& scales, Slot& byte, Slot& thread) {
  const std::vector<const Operand*> factors = d.elements(index);
  if (factors.size() != 1)
    d.fail(fmt::format("{} registers of scale factors; must be 1", factors.size()));
  scales = d.source(*factors[0], Type::kB32);
  const std::vector<const Operand*> ids = d.elements(index + 1);
  if (ids.size() != 2) d.fail("a scale operand needs {byte-id, thread-id}");
  byte = d.source(*ids[0], Type::kU16);
  thread = d.source(*ids[1], Type::kU16);
}

// ".sp" or ".sp::ordered_metadata": true when A is sparse.
bool take_sparsity(Decode& d, MmaSyncDetail& detail, int kind) {
  const int form = d.modifiers().take_one_of({"sp", "sp::ordered_metadata"});
  if (form == 0 && kind >= 0) d.fail("mma.sp with a .kind needs .sp::ordered_metadata");
  detail.sparse.order = form == 1 ? MetadataOrder::kRising : MetadataOrder::kAny;
  return form >= 0;
}

// D, A, B, C; the metadata and its selector; scales.
void take_operands(Decode& d, MmaSyncDetail& detail, bool is_sparse) {
  const size_t count = (is_sparse ? 6 : 4) + (detail.scales != 0 ? 4 : 0);
  d.expect_operands(count, count);
  // Registers that the lanes of a quad hold for a row.
  const uint32_t step_b = detail.k * detail.container_bits / 32;
  const uint32_t step_a = is_sparse ? step_b / 2 : step_b;
  const bool has_half = !is_sparse || detail.form == MmaForm::kInteger ||
                        (detail.form == MmaForm::kDense && detail.container_bits > 8);
  if (step_a != 8 && !(step_a == 4 && has_half))
    d.fail(fmt::format("K = {} is not known for these types", detail.k));
  const size_t results = detail.rules.accumulator == Accumulator::kF16 ? 2 : 4;
  detail.d = registers(d, 0, results, true, "D");
  detail.a = registers(d, 1, step_a / 2, false, "A");
  detail.b = registers(d, 2, step_b / 4, false, "B");
  detail.c = registers(d, 3, results, false, "C");
  if (is_sparse) take_metadata(d, 4, detail.k, detail.container_bits, detail.sparse);
  if (detail.scales == 0) return;
  take_scale_operands(d, count - 4, detail.sfa, detail.byte_a, detail.thread_a);
  take_scale_operands(d, count - 2, detail.sfb, detail.byte_b, detail.thread_b);
}

void decode_mma(Decode& d) {
  Modifiers& m = d.modifiers();
  if (!m.take("sync") || !m.take("aligned")) d.fail("mma needs .sync.aligned");
  d.require_aligned();
  if (m.has("f64")) return decode_mma_f64(d);
  const bool few_bits = m.has("s4") || m.has("u4") || m.has("b1") || m.has("m8n8k16");
  if (few_bits && !m.has("sp") && !m.has("sp::ordered_metadata")) return decode_mma_integer(d);
  auto* detail = d.make_detail<MmaSyncDetail>();
  const int kind =
      m.take_one_of({"kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"});
  detail->kind_f8f6f4 = kind == 0 || kind == 1;
  const bool is_sparse = take_sparsity(d, *detail, kind);
  take_shape(d, *detail);
  take_scaling(d, *detail, std::max(kind, 0));
  take_types(d, *detail);
  take_operands(d, *detail, is_sparse);
  d.insn().execute = execute;
}

constexpr Decoder kDecoders[] = {{"mma", decode_mma, traits::kComputing.with(Trait::kMultiplies)}};

}  // namespace

std::vector<Slot> take_fragment(Decode& d, size_t index, size_t count, Type type) {
  const std::vector<const Operand*> elements = d.elements(index);
  if (elements.size() != count)
    d.fail(fmt::format("operand {} has {} registers; needs {}", index + 1, elements.size(), count));
  std::vector<Slot> slots;
  for (const Operand* e : elements)
    slots.push_back(index == 0 ? d.destination(*e, type) : d.source(*e, type));
  return slots;
}

std::span<const Decoder> decoders_mma() { return kDecoders; }

}  // namespace ptxsim
