// tcgen05.mma (PTX ISA 9.0, "TensorCore 5th Generation Matrix Multiply and accumulate
// Operations"): what is checked when it is issued. What it computes when it completes:
// machine/mma/operation.cpp. Not modelled: .ashift, K = 96.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "insn/tensor/tcgen05_mma.hpp"

namespace ptxsim {
namespace {

// The top two bits of a scale factor's address are not part of it: CUTLASS keeps the scale factor's
// id there.
constexpr uint32_t kScaleAddressMask = 0x3fffffffu;

SmemDescriptor operand_descriptor(uint64_t bits, const char* name, const MmaShape& shape,
                                  uint32_t row_bytes, bool mn_major) {
  const SmemDescriptor d = decode_tcgen05_descriptor(bits, name);
  const bool atoms_of_32 = d.swizzle == SmemSwizzle::k128BAtom32B;
  if (!mn_major) {
    require_step_in_row(d, row_bytes, name);
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

uint32_t first_metadata_column(const MmaOperation& op) {
  return op.metadata_column + op.shape.selector;
}

// Allocation (R9) and overlaps (R14) of what the operation touches in tensor memory.
void check_tmem(const MmaOperation& op) {
  const MmaShape& s = op.shape;
  check_lane(s, op.d.lane, "D");
  for (Cta* cta : op.ctas) {
    TensorMemory& tmem = tensor_memory(*cta);
    tmem.check_columns(op.d.column, s.d_columns(), "D of tcgen05.mma");
    if (op.a_in_tmem) tmem.check_columns(op.a_tmem.column, kMmaKBytes / 4, "A of tcgen05.mma");
    if (s.is_sparse())
      tmem.check_columns(first_metadata_column(op), s.metadata_columns(),
                         "sparsity metadata of tcgen05.mma");
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
    check_overlap(op.d.column, s.d_columns(), "D", op.a_tmem.column, kMmaKBytes / 4, "A");
  }
  if (s.is_sparse())
    check_overlap(op.d.column, s.d_columns(), "D", first_metadata_column(op), s.metadata_columns(),
                  "the sparsity metadata");
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
    constexpr uint32_t kLanes = TensorMemory::kLanes;
    if (op.shape.is_sparse())
      tmem(0, kLanes, first_metadata_column(op), op.shape.metadata_columns(), AccessKind::kRead);
    if (op.shape.scales != 0) {  // copies in all four quarters
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

// CuTe keeps the selector in the lowest bit of its metadata's addresses, so that the instruction's
// are even.
uint32_t metadata_column(const Execution& x, const Tcgen05MmaDetail& detail, int lane) {
  const auto at = TmemAddress::of(detail.metadata.bits(x, lane));
  if (at.lane != 0 || at.column % 2 != 0)
    x.fault(
        fmt::format("tcgen05.mma.sp: sparsity metadata at lane {}, column {}; must start at lane "
                    "0 and an even column (R14)",
                    at.lane, at.column),
        lane);
  return at.column;
}

// The descriptor's effect is nothing when bit 39 is 0 and columns are not shifted.
void check_column_mask(const Execution& x, const Tcgen05MmaDetail& detail, int lane) {
  if (!detail.column_mask.present()) return;
  const uint64_t bits = x.source<uint64_t>(detail.column_mask)[lane];
  if ((bits >> 39 & 1) != 0 || (bits >> 56 & 63) != 0)
    x.fault(
        fmt::format("zero-column mask descriptor 0x{:016x}: masks (bit 39) and column shifts (bits "
                    "56-61) are not modelled",
                    bits),
        lane);
}

MmaOperation operation_of(Execution& x, const Tcgen05MmaDetail& detail, int lane) {
  MmaOperation op;
  op.ctas = ctas_of(x, detail.cta_group, "tcgen05.mma");
  op.shape =
      decode_instruction_descriptor(x.source<uint32_t>(detail.instruction)[lane], detail.kind,
                                    detail.cta_group, detail.scales, detail.variant);
  op.d = TmemAddress::of(detail.d.bits(x, lane));
  op.a_in_tmem = detail.a_in_tmem;
  if (detail.a_in_tmem) {
    op.a_tmem = TmemAddress::of(detail.a_tmem.bits(x, lane));
    if (op.shape.a_mn_major) x.fault("tcgen05.mma: A in tensor memory cannot be transposed (R14)");
  } else {
    op.a = operand_descriptor(x.source<uint64_t>(detail.a)[lane], "a-desc", op.shape, kMmaKBytes,
                              op.shape.a_mn_major);
  }
  op.b = operand_descriptor(x.source<uint64_t>(detail.b)[lane], "b-desc", op.shape,
                            k_bytes_of_b(op.shape), op.shape.b_mn_major);
  if (detail.variant.is_sparse) op.metadata_column = metadata_column(x, detail, lane);
  check_column_mask(x, detail, lane);
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

void issue(Execution& x, const Tcgen05MmaDetail& detail, int lane) {
  MmaOperation op = operation_of(x, detail, lane);
  check_tmem(op);
  const std::vector<ByteRange> bytes_a =
      op.a_in_tmem ? std::vector<ByteRange>() : footprint_of_a(op);
  const std::vector<ByteRange> bytes_b = footprint_of_b(op);
  for (Cta* cta : op.ctas)
    for (const auto* ranges : {&bytes_a, &bytes_b})
      for (const ByteRange& range : *ranges) cta->shared.check_range(range.offset, range.bytes);
  if (x.machine.options().sanitize) track_collector(x, lane, detail, op);
  note_accesses(x, lane, op, bytes_a, bytes_b);
  Stats& stats = x.machine.stats();
  ++stats.mma_instructions;
  ++stats.async_operations;
  stats.mma_multiply_adds += uint64_t{op.shape.m} * op.shape.n * op.shape.stored_k();
  x.cluster.async.submit(channel_of(x, lane), [op = std::move(op)] { execute(op); });
}

}  // namespace

Outcome execute_tcgen05_mma(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const Tcgen05MmaDetail&>(*insn.detail);
  x.for_lanes([&](int lane) { issue(x, detail, lane); });
  return Outcome::kNext;
}

}  // namespace ptxsim
