// Decoding of tcgen05.mma, .sp and .ws.
#include <fmt/format.h>

#include <algorithm>

#include "insn/tensor/tcgen05_mma.hpp"

namespace ptxsim {
namespace {

MmaKind take_kind(Decode& d) {
  const int kind = d.modifiers().take_one_of({"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8",
                                              "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"});
  if (kind < 0) d.fail("tcgen05.mma without a .kind that is known");
  return static_cast<MmaKind>(kind);
}

// PTX ISA, "Valid combinations of scale_vectorsize with types and MMA-Kind".
uint32_t take_scales(Decode& d, MmaKind kind) {
  Modifiers& m = d.modifiers();
  if (m.take("block_scale") != is_block_scaled(kind))
    d.fail(fmt::format("kind::{} {} .block_scale", name_of(kind),
                       is_block_scaled(kind) ? "needs" : "has no"));
  const int size =
      m.take_one_of({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32"});
  if (!is_block_scaled(kind)) {
    if (size >= 0) d.fail(fmt::format("kind::{} has no scale vector size", name_of(kind)));
    return 0;
  }
  const bool is_byte = kind == MmaKind::kMxf8f6f4;
  static constexpr uint32_t kCounts[] = {1, 2, 4, 4, 2};
  const uint32_t count = size < 0 || (size == 4 && is_byte) ? (is_byte ? 1 : 2) : kCounts[size];
  if (size < 0 && kind == MmaKind::kMxf4nvf4)
    d.fail("kind::mxf4nvf4 needs .scale_vec::2X, .scale_vec::4X, .block16 or .block32");
  const bool legal =
      is_byte ? count == 1 : count == 2 || (count == 4 && kind == MmaKind::kMxf4nvf4);
  if (!legal) d.fail(fmt::format("kind::{} cannot have {} scales per row", name_of(kind), count));
  return count;
}

// .collector::a::op, or .collector::bN::op with .ws.
void take_collector(Decode& d, Tcgen05MmaDetail& detail) {
  static constexpr CollectorUse kUses[] = {CollectorUse::kDiscard, CollectorUse::kFill,
                                           CollectorUse::kUse, CollectorUse::kLastUse};
  static constexpr const char* kNames[] = {"discard", "fill", "use", "lastuse"};
  const bool of_b = detail.variant.is_weight_stationary;
  detail.collector = of_b ? 1 : 0;
  for (uint32_t buffer = of_b ? 1 : 0; buffer < (of_b ? 5u : 1u); ++buffer)
    for (size_t use = 0; use < std::size(kUses); ++use)
      if (d.modifiers().take(fmt::format("{}::{}", name_of_collector(buffer), kNames[use]))) {
        detail.collector = buffer;
        detail.use = kUses[use];
        return;
      }
}

// From enable-input-d on.
void take_dense_operands(Decode& d, Tcgen05MmaDetail& detail, size_t next) {
  if (d.num_operands() > next && d.operand(next).kind == Operand::Kind::kVector) {
    for (const Operand* element : d.elements(next))
      detail.disabled.push_back(d.source(*element, Type::kB32));
    if (detail.disabled.size() != 4 * detail.cta_group)
      d.fail(fmt::format("disable-output-lane of {} registers; needs {} with cta_group::{}",
                         detail.disabled.size(), 4 * detail.cta_group, detail.cta_group));
    ++next;
  }
  d.expect_operands(next + 1, next + 2);
  detail.input = d.predicate(next);
  detail.input_negated = d.is_negated(next);
  if (d.num_operands() == next + 1) return;
  const std::optional<uint64_t> shift = d.immediate(next + 1);
  if (!shift || *shift > 15 || (detail.kind != MmaKind::kF16 && detail.kind != MmaKind::kTf32))
    d.fail("scale-input-d must be an immediate from 0 to 15, with kind::f16 or kind::tf32 only");
  detail.input_shift = static_cast<int>(*shift);
}

void take_weight_stationary_operands(Decode& d, Tcgen05MmaDetail& detail, size_t next) {
  d.expect_operands(next + 1, next + 2);
  detail.input = d.predicate(next);
  detail.input_negated = d.is_negated(next);
  if (d.num_operands() == next + 2) detail.column_mask = d.source(next + 1, Type::kB64);
}

void take_scaled_operands(Decode& d, Tcgen05MmaDetail& detail, size_t next) {
  d.expect_operands(next + 3, next + 3);
  detail.sfa = tmem_operand(d, next);
  detail.sfb = tmem_operand(d, next + 1);
  detail.input = d.predicate(next + 2);
  detail.input_negated = d.is_negated(next + 2);
}

}  // namespace

void decode_tcgen05_mma(Decode& d) {
  Modifiers& m = d.modifiers();
  if (m.has("ashift")) d.fail("tcgen05.mma.ashift is not modelled");
  auto* detail = d.make_detail<Tcgen05MmaDetail>();
  detail->variant = {.is_sparse = m.take("sp"), .is_weight_stationary = m.take("ws")};
  detail->cta_group = take_cta_group(d);
  detail->kind = take_kind(d);
  detail->scales = take_scales(d, detail->kind);
  if (detail->variant.is_weight_stationary &&
      (detail->cta_group == 2 || is_block_scaled(detail->kind)))
    d.fail("tcgen05.mma.ws has neither cta_group::2 nor block scales");
  take_collector(d, *detail);
  detail->d = tmem_operand(d, 0);
  detail->a_in_tmem = d.operand(1).kind == Operand::Kind::kAddress;
  if (detail->a_in_tmem)
    detail->a_tmem = tmem_operand(d, 1);
  else
    detail->a = d.source(1, Type::kB64);
  detail->b = d.source(2, Type::kB64);
  size_t next = 3;
  if (detail->variant.is_sparse) detail->metadata = tmem_operand(d, next++);
  detail->instruction = d.source(next++, Type::kB32);
  if (detail->scales != 0)
    take_scaled_operands(d, *detail, next);
  else if (detail->variant.is_weight_stationary)
    take_weight_stationary_operands(d, *detail, next);
  else
    take_dense_operands(d, *detail, next);
  d.insn().execute = execute_tcgen05_mma;
}

}  // namespace ptxsim
