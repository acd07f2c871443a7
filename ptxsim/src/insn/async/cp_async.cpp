// cp.async of 4, 8 or 16 bytes per thread, and cp.async.mbarrier.arrive (PTX ISA 9.0, "cp.async",
// "cp.async.mbarrier.arrive"). Generic proxy. The copies of a warp complete in order here; the
// groups of its threads and the observers do not rely on that.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>

#include "insn/async/cp.hpp"
#include "machine/memory/addresses.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kMaxBytes = 16;
using Values = std::array<std::byte, kMaxBytes>;

struct CpAsyncDetail : Detail {
  SharedOperand destination;
  GlobalOperand source;
  uint32_t bytes = 0;
  Slot source_bytes;   // absent: all
  Slot ignore_source;  // a predicate; absent: false
  bool ignore_negated = false;
};

uint64_t channel_of(Execution& x) {
  CpAsyncGroups& groups = x.cta.state<CpAsyncGroups>();
  if (groups.channels.empty()) groups.channels.resize(x.cta.warps.size());
  uint64_t& channel = groups.channels[x.warp.index];
  if (channel == 0) channel = x.cluster.async.new_channel();
  return channel;
}

// One lane's part of a copy.
struct Part {
  uint32_t offset = 0;
  uint32_t from_source = 0;  // bytes; the rest becomes 0
  uint64_t address = 0;
  std::shared_ptr<CopyGroup> group;
};

struct WarpCopy {
  uint32_t bytes = 0;
  std::vector<Part> parts;
};

void complete(Cta& cta, const WarpCopy& copy) {
  for (const Part& part : copy.parts) {
    Values value{};
    if (part.from_source != 0)
      std::memcpy(value.data(), cta.machine.global().read(part.address, part.from_source),
                  part.from_source);
    std::memcpy(cta.shared.at(part.offset), value.data(), copy.bytes);
    cta.shared.mark_written(part.offset, copy.bytes);
    --part.group->unread;
    --part.group->unfinished;
  }
  cta.cluster.changed();
}

// What the copy would write if it completed now; nothing when its source is no registered memory.
std::optional<Values> values_now(const Execution& x, const Part& part) {
  Values values{};
  if (part.from_source == 0) return values;
  const GlobalBuffer* buffer = x.machine.global().find(part.address);
  if (buffer == nullptr || part.address + part.from_source > buffer->address + buffer->data.size())
    return std::nullopt;
  std::memcpy(values.data(), buffer->data.data() + (part.address - buffer->address),
              part.from_source);
  return values;
}

uint32_t bytes_from_source(const Execution& x, const CpAsyncDetail& detail, int lane) {
  if (detail.ignore_source.present() &&
      (x.predicate(detail.ignore_source, detail.ignore_negated) >> lane & 1) != 0)
    return 0;
  if (!detail.source_bytes.present()) return detail.bytes;
  const uint32_t count = x.source<uint32_t>(detail.source_bytes)[lane];
  if (count > detail.bytes)
    x.fault(fmt::format("cp.async of {} bytes with src-size {}; must not be larger", detail.bytes,
                        count),
            lane);
  return count;
}

Part start_part(Execution& x, const CpAsyncDetail& detail, CpAsyncGroups& groups, int lane) {
  const SharedAt to = locate(x, detail.destination, lane, detail.bytes, detail.bytes);
  refuse_live_mbarrier(x, *to.cta, to.offset, detail.bytes, lane);
  Part part{to.offset, bytes_from_source(x, detail, lane),
            global_address_of(x, detail.source, lane), groups.of(x, lane).open};
  if (part.from_source != 0 && part.address % detail.bytes != 0)
    x.fault(
        fmt::format(
            "cp.async of {} bytes from 0x{:x}; the address must be a multiple of the size (R14)",
            detail.bytes, part.address),
        lane);
  if (x.is_observed()) {
    const AsyncOp op = x.issue(lane, AsyncKind::kCpAsync);
    const std::optional<Values> values = values_now(x, part);
    x.tell([&](Observer& o) {
      o.async_shared_store(op, x, *to.cta, to.offset, detail.bytes,
                           values ? values->data() : nullptr);
      o.async_global(op, x, part.from_source, AccessKind::kRead);
    });
    if (part.from_source != 0)
      x.cluster.observers.tell_of_global_access([&](Observer& o) {
        o.async_global_range(op, x, part.address, part.from_source, AccessKind::kRead);
      });
    part.group->newest = op;
  }
  to.cta->shared.poison(to.offset, detail.bytes);
  ++part.group->unread;
  ++part.group->unfinished;
  x.machine.stats().l2_read_bytes += part.from_source;
  return part;
}

Outcome execute_copy(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const CpAsyncDetail&>(*insn.detail);
  CpAsyncGroups& groups = x.cta.state<CpAsyncGroups>();
  auto copy = std::make_shared<WarpCopy>();
  copy->bytes = detail.bytes;
  x.for_lanes([&](int lane) { copy->parts.push_back(start_part(x, detail, groups, lane)); });
  ++x.machine.stats().async_operations;
  Cta& cta = x.cta;
  x.cluster.async.submit(channel_of(x), [&cta, copy] { complete(cta, *copy); });
  return Outcome::kNext;
}

struct ArriveDetail : Detail {
  SharedOperand barrier;
  bool no_increment = false;
};

// The newest cp.async of a lane that a barrier is to track.
AsyncOp newest_copy(const CopyGroups::Thread& thread) {
  if (thread.open->newest) return thread.open->newest;
  for (auto group = thread.committed.rbegin(); group != thread.committed.rend(); ++group)
    if ((*group)->newest) return (*group)->newest;
  return thread.newest_waited_for;
}

Outcome execute_arrive(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const ArriveDetail&>(*insn.detail);
  CpAsyncGroups& groups = x.cta.state<CpAsyncGroups>();
  x.for_lanes([&](int lane) {
    const SharedAt at = locate(x, detail.barrier, lane, 8, 8);
    Mbarrier& barrier = mbarrier_at(*at.cta, at.offset);
    x.tell([&](Observer& o) { o.mbarrier_used(x, lane, *at.cta, at.offset, barrier, false); });
    if (!detail.no_increment && ++barrier.pending > kMbarrierMax)
      x.fault(fmt::format("pending count of {} is above 2^20 - 1 (R10)",
                          describe(*at.cta, at.offset, barrier)),
              lane);
    Cta& cta = *at.cta;
    x.cluster.async.submit(
        channel_of(x), [&cta, offset = at.offset, op = newest_copy(groups.of(x, lane))] {
          if (op)
            cta.cluster.observers.tell(
                [&](Observer& o) { o.arrives_at(op, true, mbarrier_at(cta, offset), -1); });
          mbarrier_arrive(cta, offset, 1);
          cta.cluster.changed();
        });
  });
  return Outcome::kNext;
}

void decode_arrive(Decode& d) {
  d.expect_operands(1, 1);
  if (!d.modifiers().take("b64")) d.fail("cp.async.mbarrier.arrive needs the type .b64");
  auto* detail = d.make_detail<ArriveDetail>();
  detail->no_increment = d.modifiers().take("noinc");
  SharedForm form = take_shared_form(d);
  // ptxas takes a 32-bit register without a state space here, and CCCL writes it so.
  if (form == SharedForm::kGeneric && d.address(0).base_bytes == 4) form = SharedForm::kCta;
  detail->barrier = shared_operand(d, 0, form);
  if (detail->barrier.form == SharedForm::kCluster)
    d.fail("cp.async.mbarrier.arrive takes .shared::cta only");
  d.insn().execute = execute_arrive;
}

bool is_predicate(Decode& d, size_t index) {
  const Operand& operand = d.operand(index);
  return operand.kind == Operand::Kind::kRegister &&
         d.entry().registers[operand.reg].type == Type::kPred;
}

}  // namespace

void decode_cp_async(Decode& d) {
  Modifiers& modifiers = d.modifiers();
  if (modifiers.take("mbarrier") && modifiers.take("arrive")) return decode_arrive(d);
  const int cache = modifiers.take_one_of({"ca", "cg"});
  if (cache < 0) d.fail("cp.async needs .ca or .cg");
  const SharedForm form = take_shared_form(d);
  if (form != SharedForm::kCta || !modifiers.take("global"))
    d.fail("cp.async needs .shared.global");
  modifiers.take_performance_hints();
  auto* detail = d.make_detail<CpAsyncDetail>();
  detail->destination = shared_operand(d, 0, form);
  detail->source = global_operand(d, 1);
  const uint64_t bytes = d.immediate(2).value_or(0);
  if (bytes != 16 && (cache == 1 || (bytes != 4 && bytes != 8)))
    d.fail(fmt::format("cp.async of {} bytes; must be {}", bytes,
                       cache == 1 ? "16 with .cg" : "4, 8 or 16"));
  detail->bytes = static_cast<uint32_t>(bytes);
  size_t next = 3;
  const size_t hint = modifiers.has("L2::cache_hint") ? 1 : 0;
  if (d.num_operands() > next + hint) {
    if (is_predicate(d, next)) {
      detail->ignore_negated = d.is_negated(next);
      detail->ignore_source = d.predicate(next);
    } else {
      detail->source_bytes = d.source(next, Type::kU32);
    }
    ++next;
  }
  take_cache_hint(d, next);
  d.expect_operands(next, next);
  d.insn().execute = execute_copy;
}

}  // namespace ptxsim
