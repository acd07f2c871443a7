// tcgen05.mma (PTX ISA 9.0, "TensorCore 5th Generation Matrix Multiply and accumulate
// Operations"): decoding, and what is checked when it is issued. What it computes when it
// completes: machine/mma/operation.cpp. Not modelled: .ws, .sp, .ashift, K = 96.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ptxsim/insn/tensor/tcgen05.hpp"
#include "ptxsim/machine/mma/operation.hpp"

namespace ptxsim {
namespace {

enum class Collector : uint8_t { kDiscard, kFill, kUse, kLastUse };

struct MmaDetail : Detail {
  MmaKind kind = MmaKind::kF16;
  uint32_t cta_group = 1;
  uint32_t scales = 0;
  Collector collector = Collector::kDiscard;
  TmemOperand d, a_tmem, sfa, sfb;
  bool a_in_tmem = false;
  Slot a, b, instruction, input;
  bool input_negated = false;
  std::vector<Slot> disabled;
  int input_shift = 0;
};

// The top two bits of a scale factor's address are not part of it: CUTLASS keeps the scale factor's
// id there.
constexpr uint32_t kScaleAddressMask = 0x3fffffffu;

void report_collector(Execution& x, int lane, Severity severity, std::string message) {
  x.machine.reports().add({.rule = 15,
                           .severity = severity,
                           .message = std::move(message),
                           .place = x.machine.place_of(x.insn->statement),
                           .actor = x.machine.actor_of(x.warp, lane),
                           .other = {},
                           .missing = {},
                           .fix = "fill the collector with the matrix that is to be used again",
                           .statement = static_cast<int>(x.insn->statement)});
}

// R15: A of a use must be A of the last fill; otherwise it multiplies whatever the collector holds.
void track_collector(Execution& x, int lane, const MmaDetail& detail, const MmaShape& shape,
                     uint64_t source) {
  std::optional<CollectorFill>& fill = x.cta.state<Tcgen05State>().fill;
  const uint32_t types = static_cast<uint32_t>(shape.kind) | static_cast<uint32_t>(shape.a) << 8 |
                         (shape.a_mn_major ? 1u << 16 : 0);
  const CollectorFill current{detail.a_in_tmem, source, types, false, x.insn->statement};
  if (detail.collector == Collector::kUse || detail.collector == Collector::kLastUse) {
    if (!fill)
      report_collector(x, lane, Severity::kError,
                       "collector::a use without an earlier fill that is still valid");
    else if (!same_matrix(*fill, current))
      report_collector(
          x, lane, Severity::kError,
          fmt::format("collector::a use with matrix A 0x{:x}; the last fill, in PTX "
                      "line {}, was of 0x{:x}",
                      source, x.machine.place_of(fill->statement).ptx_line, fill->source));
    if (fill) fill->used = true;
    if (detail.collector == Collector::kLastUse) fill.reset();
    return;
  }
  if (fill && !fill->used)
    report_collector(x, lane, Severity::kWarning,
                     fmt::format("the collector::a fill of PTX line {} was never used",
                                 x.machine.place_of(fill->statement).ptx_line));
  fill.reset();
  if (detail.collector == Collector::kFill) fill = current;
}

SmemDescriptor operand_descriptor(uint64_t bits, const char* name, const MmaShape& shape,
                                  bool mn_major) {
  const SmemDescriptor d = decode_tcgen05_descriptor(bits, name);
  const bool atoms_of_32 = d.swizzle == SmemSwizzle::k128BAtom32B;
  if (!mn_major) {
    require_step_in_row(d, kMmaKBytes, name);
  } else if (atoms_of_32 != (shape.kind == MmaKind::kTf32)) {
    throw Fault(
        fmt::format("{} 0x{:016x} of a transposed operand of kind::{}: its swizzle mode {} "
                    "be the 128-byte one with 32-byte atoms (R14)",
                    name, bits, name_of(shape.kind), atoms_of_32 ? "must not" : "must"));
  }
  return d;
}

void check_overlap(uint32_t first, uint32_t columns, const char* name, uint32_t other_first,
                   uint32_t other_columns, const char* other_name) {
  if (first < other_first + other_columns && other_first < first + columns)
    throw Fault(
        fmt::format("tcgen05.mma: columns {} .. {} of {} overlap columns {} .. {} of {} "
                    "(R14)",
                    first, first + columns - 1, name, other_first, other_first + other_columns - 1,
                    other_name));
}

void check_lane(const MmaShape& shape, uint32_t lane, const char* name) {
  const bool may_be_16 = shape.layout == DLayout::kHalf;
  if (lane != 0 && !(may_be_16 && lane == 16))
    throw Fault(fmt::format("tcgen05.mma: {} starts at lane {}; must be 0{} for M = {} (R14)", name,
                            lane, may_be_16 ? " or 16" : "", shape.m));
}

// CuTe's assertions (mma_sm100_umma.hpp, SM100_MMA_F16BF16_TS and its neighbours): with A in tensor
// memory N goes in steps of 16 for 128 rows, of 32 for a pair.
void check_columns_beside_tmem(const MmaShape& s) {
  const uint32_t step = s.m == 64 ? 8 : 16 * s.ctas;
  if (s.scales == 0 && s.n % step != 0)
    throw Fault(fmt::format(
        "tcgen05.mma: N is {}; must be a multiple of {} with A in tensor memory and M = "
        "{} (R14)",
        s.n, step, s.m));
}

// Allocation (R9) and overlaps (R14) of what the operation touches in tensor memory.
void check_tmem(const MmaOperation& op) {
  const MmaShape& s = op.shape;
  check_lane(s, op.d.lane, "D");
  for (Cta* cta : op.ctas) {
    TensorMemory& tmem = tensor_memory(*cta);
    tmem.check_columns(op.d.column, s.d_columns(), "D of tcgen05.mma");
    if (op.a_in_tmem) tmem.check_columns(op.a_tmem.column, kMmaKBytes / 4, "A of tcgen05.mma");
    if (s.scales == 0) continue;
    tmem.check_columns(op.sfa_column, s.sfa_columns(), "scale factors A of tcgen05.mma");
    tmem.check_columns(op.sfb_column, s.sfb_columns(), "scale factors B of tcgen05.mma");
  }
  if (op.a_in_tmem) {
    check_lane(s, op.a_tmem.lane, "A");
    if (op.a_tmem.lane != op.d.lane)
      throw Fault(
          fmt::format("tcgen05.mma: A starts at lane {}, D at lane {}; must be the same "
                      "(R14)",
                      op.a_tmem.lane, op.d.lane));
    check_columns_beside_tmem(s);
    if (s.layout == DLayout::kSplit)
      throw Fault("tcgen05.mma: A in tensor memory with M = 128 and cta_group::2 is not modelled");
    check_overlap(op.d.column, s.d_columns(), "D", op.a_tmem.column, kMmaKBytes / 4, "A");
  }
  if (s.scales == 0) return;
  check_overlap(op.d.column, s.d_columns(), "D", op.sfa_column, s.sfa_columns(), "SFA");
  check_overlap(op.d.column, s.d_columns(), "D", op.sfb_column, s.sfb_columns(), "SFB");
  check_overlap(op.sfa_column, s.sfa_columns(), "SFA", op.sfb_column, s.sfb_columns(), "SFB");
}

// Calls f(first lane, lanes) for the lanes that hold D's rows in the CTA of this rank in the pair:
// bands of 16 in layout F (64 rows, two of which can lie side by side, at lanes 0 and 16), else
// all. `enabled_only`: without bands that disable-output-lane leaves alone.
template <class F>
void for_bands(const MmaOperation& op, uint32_t r, uint32_t lane, bool enabled_only, F&& f) {
  constexpr uint32_t kBand = 16;
  const bool is_half = op.shape.layout == DLayout::kHalf;
  uint32_t first = 0, lanes = 0;  // bands side by side are told as one
  for (uint32_t at = is_half ? lane : 0; at < TensorMemory::kLanes; at += is_half ? 32 : kBand) {
    if (enabled_only && (~op.disabled[4 * r + at / 32] >> at % 32 & 0xffff) == 0) continue;
    if (lanes != 0 && first + lanes != at) f(first, std::exchange(lanes, 0));
    if (lanes == 0) first = at;
    lanes += kBand;
  }
  if (lanes != 0) f(first, lanes);
}

void note_accesses(Execution& x, int lane, const MmaOperation& op,
                   const std::vector<ByteRange>& bytes_a, const std::vector<ByteRange>& bytes_b) {
  if (!x.is_observed()) return;
  const AsyncOp async = x.issue(lane, AsyncKind::kTcgen05);
  for (uint32_t r = 0; r < op.ctas.size(); ++r) {
    Cta* cta = op.ctas[r];
    for (const auto* ranges : {&bytes_a, &bytes_b})
      for (const ByteRange& range : *ranges)
        x.tell([&](Observer& o) {
          o.async_shared(async, x, *cta, range.offset, range.bytes, AccessKind::kRead);
        });
    const auto tmem = [&](uint32_t first_lane, uint32_t lanes, uint32_t column, uint32_t columns,
                          AccessKind kind) {
      x.tell([&](Observer& o) {
        o.async_tmem(async, x, *cta, first_lane, lanes, column, columns, kind);
      });
    };
    if (op.a_in_tmem)
      for_bands(op, r, op.a_tmem.lane, false, [&](uint32_t first_lane, uint32_t lanes) {
        tmem(first_lane, lanes, op.a_tmem.column, kMmaKBytes / 4, AccessKind::kRead);
      });
    if (op.shape.scales != 0) {
      constexpr uint32_t kLanes = TensorMemory::kLanes;  // copies in all four quarters
      tmem(0, kLanes, op.sfa_column, op.shape.sfa_columns(), AccessKind::kRead);
      tmem(0, kLanes, op.sfb_column, op.shape.sfb_columns(), AccessKind::kRead);
    }
    for_bands(op, r, op.d.lane, true, [&](uint32_t first_lane, uint32_t lanes) {
      const uint32_t columns = op.shape.d_columns();
      if (op.accumulate) tmem(first_lane, lanes, op.d.column, columns, AccessKind::kRead);
      tmem(first_lane, lanes, op.d.column, columns, AccessKind::kWrite);
    });
  }
}

uint32_t scale_column(const TmemOperand& operand, const Execution& x, int lane, const char* name) {
  const auto at = TmemAddress::of(operand.bits(x, lane) & kScaleAddressMask);
  if (at.lane != 0)
    x.fault(fmt::format("tcgen05.mma: {} at lane {}; must start at lane 0 (R14)", name, at.lane),
            lane);
  return at.column;
}

MmaOperation operation_of(Execution& x, const MmaDetail& detail, int lane) {
  MmaOperation op;
  op.ctas = ctas_of(x, detail.cta_group, "tcgen05.mma");
  op.shape = decode_instruction_descriptor(x.source<uint32_t>(detail.instruction)[lane],
                                           detail.kind, detail.cta_group, detail.scales);
  op.d = TmemAddress::of(detail.d.bits(x, lane));
  op.a_in_tmem = detail.a_in_tmem;
  if (detail.a_in_tmem) {
    op.a_tmem = TmemAddress::of(detail.a_tmem.bits(x, lane));
    if (op.shape.a_mn_major) x.fault("tcgen05.mma: A in tensor memory cannot be transposed (R14)");
  } else {
    op.a = operand_descriptor(x.source<uint64_t>(detail.a)[lane], "a-desc", op.shape,
                              op.shape.a_mn_major);
  }
  op.b = operand_descriptor(x.source<uint64_t>(detail.b)[lane], "b-desc", op.shape,
                            op.shape.b_mn_major);
  if (detail.scales != 0) {
    op.sfa_column = scale_column(detail.sfa, x, lane, "scale factors A");
    op.sfb_column = scale_column(detail.sfb, x, lane, "scale factors B");
  }
  op.accumulate = (x.predicate(detail.input, detail.input_negated) >> lane & 1) != 0;
  op.input_shift = detail.input_shift;
  for (size_t i = 0; i < detail.disabled.size(); ++i)
    op.disabled[i] = x.source<uint32_t>(detail.disabled[i])[lane];
  op.exact = x.machine.options().mma == MmaMode::kExact;
  return op;
}

void issue(Execution& x, const MmaDetail& detail, int lane) {
  MmaOperation op = operation_of(x, detail, lane);
  check_tmem(op);
  const std::vector<ByteRange> bytes_a =
      op.a_in_tmem ? std::vector<ByteRange>() : footprint_of_a(op);
  const std::vector<ByteRange> bytes_b = footprint_of_b(op);
  for (Cta* cta : op.ctas)
    for (const auto* ranges : {&bytes_a, &bytes_b})
      for (const ByteRange& range : *ranges) cta->shared.check_range(range.offset, range.bytes);
  if (x.machine.options().sanitize)
    track_collector(
        x, lane, detail, op.shape,
        detail.a_in_tmem ? detail.a_tmem.bits(x, lane) : x.source<uint64_t>(detail.a)[lane]);
  note_accesses(x, lane, op, bytes_a, bytes_b);
  Stats& stats = x.machine.stats();
  ++stats.mma_instructions;
  ++stats.async_operations;
  stats.mma_multiply_adds += uint64_t{op.shape.m} * op.shape.n * op.shape.k;
  x.cluster.async.submit(channel_of(x, lane), [op = std::move(op)] { execute(op); });
}

Outcome execute_mma(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const MmaDetail&>(*insn.detail);
  x.for_lanes([&](int lane) { issue(x, detail, lane); });
  return Outcome::kNext;
}

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

void decode_dense_operands(Decode& d, MmaDetail& detail, size_t next) {
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

}  // namespace

void decode_tcgen05_mma(Decode& d) {
  Modifiers& m = d.modifiers();
  for (const char* name : {"ws", "sp", "ashift"})
    if (m.has(name)) d.fail(fmt::format("tcgen05.mma.{} is not modelled", name));
  auto* detail = d.make_detail<MmaDetail>();
  detail->cta_group = take_cta_group(d);
  detail->kind = take_kind(d);
  detail->scales = take_scales(d, detail->kind);
  static constexpr Collector kOrder[] = {Collector::kDiscard, Collector::kFill, Collector::kUse,
                                         Collector::kLastUse};
  const int collector = m.take_one_of({"collector::a::discard", "collector::a::fill",
                                       "collector::a::use", "collector::a::lastuse"});
  detail->collector = kOrder[std::max(collector, 0)];
  detail->d = tmem_operand(d, 0);
  detail->a_in_tmem = d.operand(1).kind == Operand::Kind::kAddress;
  if (detail->a_in_tmem)
    detail->a_tmem = tmem_operand(d, 1);
  else
    detail->a = d.source(1, Type::kB64);
  detail->b = d.source(2, Type::kB64);
  detail->instruction = d.source(3, Type::kB32);
  if (detail->scales == 0) {
    decode_dense_operands(d, *detail, 4);
  } else {
    d.expect_operands(7, 7);
    detail->sfa = tmem_operand(d, 4);
    detail->sfb = tmem_operand(d, 5);
    detail->input = d.predicate(6);
    detail->input_negated = d.is_negated(6);
  }
  d.insn().execute = execute_mma;
}

}  // namespace ptxsim
