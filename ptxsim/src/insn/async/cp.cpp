// cp: which of its families a statement belongs to; groups; .prefetch (PTX ISA 9.0, "Data Movement
// and Conversion Instructions: Asynchronous copy").
#include "insn/async/cp.hpp"

#include <fmt/format.h>

#include "insn/registry.hpp"
#include "insn/traits.hpp"

namespace ptxsim {
namespace {

bool is_done(const CopyGroup& group, bool only_reads) {
  return only_reads ? group.unread == 0 : group.unfinished == 0;
}

bool lane_is_done(const CopyGroups::Thread& thread, size_t pending, bool only_reads) {
  const size_t count = thread.committed.size();
  for (size_t i = 0; i + pending < count; ++i)
    if (!is_done(*thread.committed[i], only_reads)) return false;
  return true;
}

void learn(Execution& x, CopyGroups::Thread& thread, size_t pending, bool only_reads, int lane) {
  const size_t count = thread.committed.size();
  for (size_t i = 0; i + pending < count; ++i)
    if (thread.committed[i]->newest) thread.newest_waited_for = thread.committed[i]->newest;
  if (thread.newest_waited_for)
    x.tell([&](Observer& o) { o.waited_for(x, 1u << lane, thread.newest_waited_for, only_reads); });
  // Groups that are complete are of no further interest, but only from the oldest on: the newest
  // are counted.
  while (thread.committed.size() > pending && is_done(*thread.committed.front(), false))
    thread.committed.pop_front();
}

template <class Groups>
Outcome execute_commit(Execution& x, const Insn&) {
  commit_groups(x, x.cta.state<Groups>());
  x.tell([&](Observer& o) { o.group_committed(x, x.mask, Groups::kKind); });
  return Outcome::kNext;
}

template <class Groups>
Outcome execute_wait_group(Execution& x, const Insn& insn) {
  if (groups_are_done(x, x.cta.state<Groups>(), insn.imm, insn.variant != 0)) return Outcome::kNext;
  return x.block({WaitInfo::Kind::kAsync, 0, 0, 0, "its asynchronous copies"});
}

// commit_group, then wait_group 0. The ticket remembers that the first has been done.
Outcome execute_wait_all(Execution& x, const Insn&) {
  CpAsyncGroups& groups = x.cta.state<CpAsyncGroups>();
  constexpr uint64_t kCommitted = 2;
  if (x.warp.ticket[x.first_lane()] != kCommitted) commit_groups(x, groups);
  if (groups_are_done(x, groups, 0, false)) return Outcome::kNext;
  x.for_lanes([&](int lane) { x.warp.ticket[lane] = kCommitted; });
  return x.block({WaitInfo::Kind::kAsync, 0, 0, 0, "its cp.async copies"});
}

uint64_t group_count(Decode& d) {
  d.expect_operands(1, 1);
  const auto count = d.immediate(0);
  if (!count) d.fail("wait_group needs an integer constant");
  return *count;
}

// True when the statement was one of commit_group, wait_group, wait_all.
bool decode_groups(Decode& d, bool bulk) {
  Modifiers& modifiers = d.modifiers();
  if (modifiers.take("commit_group")) {
    d.expect_operands(0, 0);
    d.insn().execute = bulk ? execute_commit<BulkGroups> : execute_commit<CpAsyncGroups>;
    return true;
  }
  if (modifiers.take("wait_group")) {
    d.insn().imm = group_count(d);
    d.insn().variant = bulk && modifiers.take("read");
    d.insn().execute = bulk ? execute_wait_group<BulkGroups> : execute_wait_group<CpAsyncGroups>;
    return true;
  }
  if (!bulk && modifiers.take("wait_all")) {
    d.expect_operands(0, 0);
    d.insn().execute = execute_wait_all;
    return true;
  }
  return false;
}

struct PrefetchDetail : Detail {
  GlobalOperand source;
  Slot size;
};

// Nothing happens; what would be wrong on a device is still an error.
Outcome execute_prefetch(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const PrefetchDetail&>(*insn.detail);
  x.for_lanes([&](int lane) {
    check_multiple_of_16(x, "prefetch address", global_address_of(x, detail.source, lane), lane);
    check_multiple_of_16(x, "prefetch size", x.source<uint32_t>(detail.size)[lane], lane);
  });
  return Outcome::kNext;
}

void decode_prefetch(Decode& d) {
  if (!d.modifiers().take("L2") || !d.modifiers().take("global"))
    d.fail("a bulk prefetch needs .L2.global");
  auto* detail = d.make_detail<PrefetchDetail>();
  detail->source = global_operand(d, 0);
  detail->size = d.source(1, Type::kU32);
  size_t next = 2;
  take_cache_hint(d, next);
  d.expect_operands(next, next);
  d.insn().execute = execute_prefetch;
}

void decode_cp(Decode& d) {
  Modifiers& modifiers = d.modifiers();
  const bool reduces = modifiers.take("reduce");
  if (!modifiers.take("async")) d.fail("cp without .async has no meaning");
  const bool bulk = modifiers.take("bulk");
  if (!reduces && decode_groups(d, bulk)) return;
  if (!bulk) {
    if (reduces) d.fail("cp.reduce needs .async.bulk");
    return decode_cp_async(d);
  }
  const bool prefetches = modifiers.take("prefetch");
  const bool tensor = modifiers.take("tensor");
  if (tensor) {
    if (reduces) return decode_tensor_reduce(d);
    return prefetches ? decode_tensor_prefetch(d) : decode_tensor_copy(d);
  }
  if (reduces) return decode_bulk_reduce(d);
  return prefetches ? decode_prefetch(d) : decode_bulk_copy(d);
}

constexpr Traits kBulk = traits::kBulkCopy.with(Mutants::kBulkCopy);
constexpr Traits kBulkPrefetch = traits::kPrefetch.with(Trait::kBulk);
constexpr Traits kGroup = traits::kGroup.with(Mutants::kCopyGroup);
constexpr Form kForms[] = {
    {{"mbarrier", "arrive"}, traits::kLooseBarrier.with(Trait::kAsync | Trait::kGenericProxy)},
    {{"bulk"}, kBulk},
    {{"bulk", "tensor"}, kBulk.with(Trait::kTensorMap)},
    {{"bulk", "prefetch"}, kBulkPrefetch},
    {{"prefetch", "tensor"}, kBulkPrefetch.with(Trait::kTensorMap)},
    {{"commit_group"}, kGroup},
    {{"commit_group", "bulk"}, kGroup.with(Trait::kBulk)},
    {{"wait_group"}, kGroup},
    {{"wait_group", "bulk"}, kGroup.with(Trait::kBulk)},
    {{"wait_all"}, kGroup}};
constexpr Decoder kDecoders[] = {{"cp", decode_cp, traits::kAsyncCopy, kForms}};

}  // namespace

void commit_groups(Execution& x, CopyGroups& groups) {
  x.for_lanes([&](int lane) {
    CopyGroups::Thread& thread = groups.of(x, lane);
    thread.committed.push_back(std::move(thread.open));
    thread.open = std::make_shared<CopyGroup>();
  });
}

bool groups_are_done(Execution& x, CopyGroups& groups, size_t pending, bool only_reads) {
  bool done = true;
  x.for_lanes(
      [&](int lane) { done = done && lane_is_done(groups.of(x, lane), pending, only_reads); });
  if (!done) return false;
  x.for_lanes([&](int lane) { learn(x, groups.of(x, lane), pending, only_reads, lane); });
  return true;
}

void check_multiple_of_16(const Execution& x, const char* what, uint64_t value, int lane) {
  if (value % 16 != 0)
    x.fault(fmt::format("{} 0x{:x}; must be a multiple of 16 (R14)", what, value), lane);
}

void take_cache_hint(Decode& d, size_t& operand) {
  if (!d.modifiers().take("L2::cache_hint")) return;
  d.source(operand++, Type::kB64);
}

std::span<const Decoder> decoders_copy() { return kDecoders; }

}  // namespace ptxsim
