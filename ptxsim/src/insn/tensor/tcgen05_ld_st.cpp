// tcgen05.ld, tcgen05.st and tcgen05.wait (PTX ISA 9.0, "Tensor Memory and Register Load/Store
// Instructions"). A warp reaches the 32 lanes of its rank in its warpgroup.
//
// The destination registers of a load are poisoned when it is issued, filled when it completes, and
// belong to it until tcgen05.wait::ld (R8). A store takes its registers when it is issued and
// writes tensor memory when it completes. tcgen05.ld.red gives, besides, the least or largest word
// of each lane. Not modelled: .red of the shape 16x32bx2.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <memory>
#include <utility>

#include "insn/tensor/tcgen05.hpp"
#include "machine/registers/owned.hpp"
#include "machine/tensor_core/tmem_shapes.hpp"
#include "number/float_reduction.hpp"

namespace ptxsim {
namespace {

// What .red reduces the words of a lane to.
struct MoveReduction {
  Type type = Type::kNone;  // kNone: no .red
  FloatReduction::Form form;
  Slot result;
};

struct MoveDetail : Detail {
  bool is_load = true;
  MoveShape shape = MoveShape::k32x32b;
  uint32_t num = 1;
  uint32_t split = 0;  // 16x32bx2: immHalfSplitoff
  // pack::16b, unpack::16b: a register holds the low halves of two neighbouring columns.
  bool halves = false;
  TmemOperand address;
  std::vector<Slot> registers;
  MoveReduction reduction;
  std::vector<Warp::OwnedRange> owned;  // a load's destination, neighbours joined

  const char* name() const { return is_load ? "tcgen05.ld" : "tcgen05.st"; }
  uint32_t columns() const { return columns_of(shape, num) * (halves ? 2 : 1) + split; }
};

// Owners of registers: one number for all loads of a warp, as one wait is for all of them.
constexpr uint64_t kLoadOwner = 0x7463'6765'6e30'356cu;  // "tcgen05l"

CellOffset cell_at(const MoveDetail& detail, uint32_t thread, uint32_t j, uint32_t half) {
  CellOffset cell = cell_of(detail.shape, thread, j);
  if (detail.halves) cell.column = 2 * cell.column + half;
  if (detail.shape == MoveShape::k16x32bx2) cell.column += thread / 16 * detail.split;
  return cell;
}

uint32_t reduced(const MoveReduction& reduction, const uint32_t* words, uint32_t count) {
  if (reduction.type == Type::kF32) {
    FloatReduction floats(reduction.form);
    for (uint32_t i = 0; i < count; ++i) floats.add(words[i]);
    return floats.result();
  }
  // Signed numbers in the order of unsigned ones.
  const uint32_t flip = reduction.type == Type::kS32 ? 0x80000000u : 0;
  const auto less = [flip](uint32_t a, uint32_t b) { return (a ^ flip) < (b ^ flip); };
  return reduction.form.is_min ? *std::min_element(words, words + count, less)
                               : *std::max_element(words, words + count, less);
}

void load_now(TensorMemory& tmem, TmemAddress at, const MoveDetail& detail, std::byte* registers) {
  for (uint32_t j = 0; j < detail.registers.size(); ++j) {
    if (!detail.registers[j].present()) continue;
    auto* lanes = reinterpret_cast<uint32_t*>(registers + detail.registers[j].at);
    for (uint32_t t = 0; t < kWarpSize; ++t) {
      const CellOffset low = cell_at(detail, t, j, 0);
      uint32_t value = tmem.cell(at.lane + low.lane, at.column + low.column);
      if (detail.halves)
        value = (value & 0xffff) | tmem.cell(at.lane + low.lane, at.column + low.column + 1) << 16;
      lanes[t] = value;
    }
  }
  if (!detail.reduction.result.present()) return;
  auto* results = reinterpret_cast<uint32_t*>(registers + detail.reduction.result.at);
  for (uint32_t t = 0; t < kWarpSize; ++t)
    results[t] = reduced(detail.reduction, tmem.at(at.lane + t, at.column), detail.num);
}

void store_now(TensorMemory& tmem, TmemAddress at, const MoveDetail& detail,
               const std::vector<uint32_t>& values) {
  for (uint32_t j = 0; j < detail.registers.size(); ++j) {
    for (uint32_t t = 0; t < kWarpSize; ++t) {
      const uint32_t value = values[j * kWarpSize + t];
      const CellOffset low = cell_at(detail, t, j, 0);
      uint32_t* cell = tmem.at(at.lane + low.lane, at.column + low.column);
      cell[0] = detail.halves ? value & 0xffff : value;
      if (detail.halves) cell[1] = value >> 16;
    }
  }
}

void warn_of_lane(Execution& x, const MoveDetail& detail, uint32_t lane, uint32_t quarter) {
  x.machine.reports().add(
      {.rule = 14,
       .severity = Severity::kWarning,
       .message = fmt::format("{} with lane {} in the address; warp {} reaches lanes {} to {}",
                              detail.name(), lane, x.warp.index, 32 * quarter, 32 * quarter + 31),
       .place = x.machine.place_of(x.insn->statement),
       .actor = x.machine.actor_of(x.warp, 0),
       .other = {},
       .missing = {},
       .fix = "add 32 * (warp index % 4) to the lane of the address",
       .statement = static_cast<int>(x.insn->statement)});
}

// The address with the lane of this warp's quarter. Kernels that are known to run leave the quarter
// out or, in the odd CTA of a pair, add 128 to it: both are accepted with a warning.
TmemAddress checked_address(Execution& x, const MoveDetail& detail) {
  const auto given =
      TmemAddress::of(x.uniform<uint32_t>(detail.address.base, "address") + detail.address.offset);
  const uint32_t quarter = x.warp.index % 4;
  const uint32_t shift = given.lane >= 128 && (x.cta.rank & 1) != 0 ? 128 : 0;
  const uint32_t named = (given.lane - shift) / 32;
  if (named != quarter && named != 0)
    x.fault(fmt::format("{} with lane {} in the address; warp {} reaches lanes {} to {} (R14)",
                        detail.name(), given.lane, x.warp.index, 32 * quarter, 32 * quarter + 31));
  if ((named != quarter || shift != 0) && x.machine.options().sanitize)
    warn_of_lane(x, detail, given.lane, quarter);
  const uint32_t in_quarter = given.lane % 32;
  if (in_quarter % lanes_of(detail.shape) != 0)
    x.fault(
        fmt::format("{} with lane {} in the address; must be a multiple of {} for its shape "
                    "(R14)",
                    detail.name(), given.lane, lanes_of(detail.shape)));
  tensor_memory(x.cta).check_columns(given.column, detail.columns(), detail.name());
  return {32 * quarter + in_quarter, given.column};
}

void note_accesses(Execution& x, const MoveDetail& detail, TmemAddress at,
                   Tcgen05State::Transfers& transfers) {
  if (!x.is_observed()) return;
  const AsyncOp op =
      x.issue(x.first_lane(), detail.is_load ? AsyncKind::kTcgen05Ld : AsyncKind::kTcgen05St);
  const AccessKind kind = detail.is_load ? AccessKind::kRead : AccessKind::kWrite;
  const uint32_t scale = detail.halves ? 2 : 1;
  const uint32_t lanes = lanes_of(detail.shape);
  if (detail.shape == MoveShape::k16x32bx2) {
    for (const uint32_t column : {at.column, at.column + detail.split})
      x.tell([&](Observer& o) {
        o.async_tmem(op, x, x.cta, at.lane, lanes, column, detail.num * scale, kind);
      });
  } else {
    x.tell([&](Observer& o) {
      o.async_tmem(op, x, x.cta, at.lane, lanes, at.column, detail.columns(), kind);
    });
  }
  transfers.last = op;
}

Outcome execute_move(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const MoveDetail&>(*insn.detail);
  if (x.mask != 0xffffffffu)
    x.fault(fmt::format("{} executed by lanes {:08x}; needs all 32 lanes of a warp (R12)",
                        detail.name(), x.mask));
  const TmemAddress at = checked_address(x, detail);
  Tcgen05State::PerWarp& warp_state = x.cta.state<Tcgen05State>().warps[x.warp.index];
  Tcgen05State::Transfers& transfers = detail.is_load ? warp_state.loads : warp_state.stores;
  note_accesses(x, detail, at, transfers);
  ++transfers.in_flight;
  ++x.machine.stats().async_operations;
  TensorMemory& tmem = tensor_memory(x.cta);
  Cluster& cluster = x.cluster;
  if (!detail.is_load) {
    std::vector<uint32_t> values(detail.registers.size() * kWarpSize);
    for (size_t j = 0; j < detail.registers.size(); ++j)
      std::copy_n(x.source<uint32_t>(detail.registers[j]), kWarpSize, &values[j * kWarpSize]);
    cluster.async.submit([&tmem, at, &detail, &transfers, &cluster, values = std::move(values)] {
      store_now(tmem, at, detail, values);
      --transfers.in_flight;
      cluster.changed();
    });
    return Outcome::kNext;
  }
  for (Slot slot : detail.registers)
    if (slot.present()) std::fill_n(x.destination<uint32_t>(slot), kWarpSize, kPoisonWord);
  if (const Slot slot = detail.reduction.result; slot.present())
    std::fill_n(x.destination<uint32_t>(slot), kWarpSize, kPoisonWord);
  for (Warp::OwnedRange range : detail.owned) {
    range.statement = static_cast<int>(insn.statement);
    x.warp.owned.push_back(range);
  }
  std::byte* registers = x.registers;
  auto load = std::make_shared<Warp::Unfinished>();
  load->owner = kLoadOwner;
  load->finish = [&tmem, at, &detail, &transfers, &cluster, registers] {
    load_now(tmem, at, detail, registers);
    --transfers.in_flight;
    cluster.changed();
  };
  x.warp.unfinished.push_back(load);
  cluster.async.submit([load] {
    if (!std::exchange(load->done, true)) load->finish();
  });
  return Outcome::kNext;
}

Outcome execute_wait(Execution& x, const Insn& insn) {
  const bool loads = insn.variant != 0;
  Tcgen05State::PerWarp& warp_state = x.cta.state<Tcgen05State>().warps[x.warp.index];
  Tcgen05State::Transfers& transfers = loads ? warp_state.loads : warp_state.stores;
  if (transfers.in_flight != 0)
    return x.block({.kind = WaitInfo::Kind::kAsync,
                    .cta_rank = x.cta.rank,
                    .what = loads ? "tcgen05.wait::ld" : "tcgen05.wait::st"});
  if (loads) release_owned(x, kLoadOwner);
  if (transfers.last) x.tell([&](Observer& o) { o.waited_for(x, x.mask, *transfers.last, false); });
  transfers.last.reset();
  return Outcome::kNext;
}

void decode_shape(Decode& d, MoveDetail& detail) {
  Modifiers& m = d.modifiers();
  const int shape = m.take_one_of({"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"});
  if (shape < 0) d.fail(fmt::format("{} without a shape that is known", detail.name()));
  detail.shape = static_cast<MoveShape>(shape);
  const int num = m.take_one_of({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  if (num < 0) d.fail(fmt::format("{} needs .x1 to .x128", detail.name()));
  detail.num = 1u << num;
  if (registers_of(detail.shape, detail.num) > 128)
    d.fail(fmt::format("{} of {} registers; must be 128 at most", detail.name(),
                       registers_of(detail.shape, detail.num)));
  detail.halves = m.take(detail.is_load ? "pack::16b" : "unpack::16b");
  const bool is_reduced = detail.reduction.type != Type::kNone;
  if (!m.take("sync") || !m.take("aligned") || (!is_reduced && !m.take("b32")))
    d.fail(fmt::format("{} needs .sync.aligned and .b32", detail.name()));
}

// .red.min.abs.NaN.f32 and the like.
void take_reduction(Decode& d, MoveReduction& reduction) {
  Modifiers& m = d.modifiers();
  if (!m.take("red")) return;
  const int operation = m.take_one_of({"min", "max"});
  reduction.type = m.take_type();
  const bool is_float = reduction.type == Type::kF32;
  if (operation < 0 || (!is_float && reduction.type != Type::kU32 && reduction.type != Type::kS32))
    d.fail("tcgen05.ld.red needs .min or .max, and .u32, .s32 or .f32");
  reduction.form.is_min = operation == 0;
  reduction.form.absolute = is_float && m.take("abs");
  reduction.form.propagates_nan = is_float && m.take("NaN");
}

void check_reduced_shape(Decode& d, const MoveDetail& detail) {
  if (detail.reduction.type == Type::kNone) return;
  if (detail.shape == MoveShape::k16x32bx2)
    d.fail("tcgen05.ld.red.16x32bx2 is not modelled: whether a lane's two threads share a result");
  if (detail.shape != MoveShape::k32x32b || detail.num < 2 || detail.halves)
    d.fail("tcgen05.ld.red needs the shape 32x32b and .x2 or more, without .pack::16b");
}

void decode_registers(Decode& d, MoveDetail& detail, size_t index) {
  const std::vector<const Operand*> elements = d.elements(index);
  const uint32_t expected = registers_of(detail.shape, detail.num);
  if (elements.size() != expected)
    d.fail(fmt::format("{} with {} registers; its shape and count need {}", detail.name(),
                       elements.size(), expected));
  for (const Operand* element : elements)
    detail.registers.push_back(detail.is_load ? d.destination(*element, Type::kB32)
                                              : d.source(*element, Type::kB32));
}

void join_owned(MoveDetail& detail) {
  std::vector<uint32_t> starts;
  for (Slot slot : detail.registers)
    if (slot.present()) starts.push_back(slot.at);
  if (detail.reduction.result.present()) starts.push_back(detail.reduction.result.at);
  std::sort(starts.begin(), starts.end());
  constexpr uint32_t kBytes = kWarpSize * sizeof(uint32_t);
  for (uint32_t start : starts) {
    if (!detail.owned.empty() && detail.owned.back().at + detail.owned.back().bytes == start)
      detail.owned.back().bytes += kBytes;
    else
      detail.owned.push_back({start, kBytes, kLoadOwner, false, -1});
  }
}

void decode_move(Decode& d, bool is_load) {
  auto* detail = d.make_detail<MoveDetail>();
  detail->is_load = is_load;
  if (is_load) take_reduction(d, detail->reduction);
  decode_shape(d, *detail);
  check_reduced_shape(d, *detail);
  const bool is_reduced = detail->reduction.type != Type::kNone;
  const bool has_split = detail->shape == MoveShape::k16x32bx2;
  const size_t count = has_split || is_reduced ? 3 : 2;
  d.expect_operands(count, count);
  if (is_reduced) detail->reduction.result = d.destination(1, Type::kB32);
  detail->address = tmem_operand(d, is_reduced ? 2 : is_load ? 1 : 0);
  if (has_split) {
    const std::optional<uint64_t> split = d.immediate(is_load ? 2 : 1);
    if (!split || *split > TensorMemory::kColumns)
      d.fail(fmt::format("{}.16x32bx2 needs an immediate split offset of at most 512 columns",
                         detail->name()));
    detail->split = static_cast<uint32_t>(*split);
  }
  decode_registers(d, *detail, is_load ? 0 : d.num_operands() - 1);
  if (is_load) join_owned(*detail);
  d.insn().owns_registers = is_load;
  d.require_aligned();
  d.insn().execute = execute_move;
}

}  // namespace

void decode_tcgen05_ld(Decode& d) { decode_move(d, true); }
void decode_tcgen05_st(Decode& d) { decode_move(d, false); }

void decode_tcgen05_wait(Decode& d, bool loads) {
  if (!d.modifiers().take("sync") || !d.modifiers().take("aligned"))
    d.fail("tcgen05.wait needs .sync.aligned");
  d.expect_operands(0, 0);
  d.require_aligned();
  d.insn().variant = loads ? 1 : 0;
  d.insn().execute = execute_wait;
}

}  // namespace ptxsim
