// Stores to the shared memory of a cluster that complete on an mbarrier: st.async, red.async; and
// st.bulk, which zeroes shared memory (PTX ISA 9.0, "Data Movement and Conversion Instructions:
// st.async", "st.bulk"; "Parallel Synchronization and Communication Instructions: red.async").
// The forms on global memory with .release are in insn/memory.
#include <fmt/format.h>

#include <cstring>

#include "insn/memory/atom_red.hpp"
#include "insn/memory/memory.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kMaxAsyncBytes = 16;  // .v4.b32, .v2.b64

struct AsyncStoreDetail final : Detail {
  AddressOperand to, barrier;
  uint32_t element_bytes = 0;
  uint32_t count = 1;
  std::array<Slot, 4> elements{};
  UpdateElement update = nullptr;  // red.async
};

void complete(Cta& owner, uint32_t offset, uint32_t barrier, uint32_t bytes,
              const std::array<std::byte, kMaxAsyncBytes>& value, UpdateElement update) {
  if (owner.exited)
    throw Fault(
        fmt::format("an asynchronous store reaches CTA rank {}, which has exited; a cluster "
                    "barrier before its exit is missing (R11)",
                    owner.rank));
  std::byte* to = owner.shared.at(offset);
  if (update != nullptr) {
    if (owner.machine.options().check_uninitialized && !owner.shared.is_written(offset, bytes))
      throw Fault(fmt::format("red.async on shared address 0x{:x}, which was never written",
                              shared_address(owner, offset)));
    update(to, value.data(), nullptr);
  } else {
    std::memcpy(to, value.data(), bytes);
    owner.shared.mark_written(offset, bytes);
  }
  mbarrier_complete_tx(owner, barrier, bytes);
  owner.cluster.changed();
}

Outcome async_store(Execution& x, const Insn& insn) {
  const auto& a = static_cast<const AsyncStoreDetail&>(*insn.detail);
  const uint32_t bytes = a.element_bytes * a.count;
  x.for_lanes([&](int lane) {
    const MemoryAt at = locate(x, a.to.space, a.to.at(x, lane), bytes, bytes, lane);
    const MemoryAt bar = locate(x, a.barrier.space, a.barrier.at(x, lane), 8, 8, lane);
    if (at.space != Space::kShared || bar.space != Space::kShared)
      x.fault("the destination and the mbarrier must be in shared memory of the cluster", lane);
    if (at.owner != bar.owner)
      x.fault(
          fmt::format("destination in CTA rank {} and mbarrier in CTA rank {}; must be the same "
                      "CTA",
                      at.owner->rank, bar.owner->rank),
          lane);
    Cta& owner = *at.owner;
    const uint32_t offset = static_cast<uint32_t>(at.offset);
    const uint32_t barrier_at = static_cast<uint32_t>(bar.offset);
    refuse_live_mbarrier(x, owner, offset, bytes, lane);
    Mbarrier& barrier = mbarrier_at(owner, barrier_at);
    std::array<std::byte, kMaxAsyncBytes> value{};
    for (uint32_t i = 0; i < a.count; ++i)
      std::memcpy(value.data() + i * a.element_bytes,
                  x.source<std::byte>(a.elements[i]) + size_t{a.element_bytes} * lane,
                  a.element_bytes);
    if (x.is_observed()) {
      x.tell([&](Observer& o) { o.mbarrier_used(x, lane, owner, barrier_at, barrier, true); });
      const AsyncOp op = x.issue(lane, AsyncKind::kTmaLoad);
      x.tell([&](Observer& o) {
        o.arrives_at(op, false, barrier, -1);
        o.async_shared(op, x, owner, offset, bytes,
                       a.update == nullptr ? AccessKind::kWrite : AccessKind::kAtomic);
      });
    }
    if (a.update == nullptr) owner.shared.poison(offset, bytes);
    ++x.machine.stats().async_operations;
    x.cluster.async.submit([&owner, offset, barrier_at, bytes, value, update = a.update] {
      complete(owner, offset, barrier_at, bytes, value, update);
    });
  });
  return Outcome::kNext;
}

// Common to both: .shared::cluster or generic, the completion mechanism, [a], b, [mbar].
void decode_async(Decode& d, AsyncStoreDetail& a, Type type) {
  const AddressSpace space = take_space(d);
  if (space.space != Space::kGeneric && (space.space != Space::kShared || space.own_shared_only))
    d.fail("needs .shared::cluster or generic addressing");
  if (!d.modifiers().take("mbarrier::complete_tx::bytes"))
    d.fail("needs .mbarrier::complete_tx::bytes");
  d.expect_operands(3, 3);
  a.to = take_address(d, d.operand(0), space);
  a.barrier = take_address(d, d.operand(2), space);
  a.element_bytes = bytes_of(type);
  const auto elements = d.elements(1);
  if (elements.size() != a.count)
    d.fail(fmt::format("{} registers for {} elements", elements.size(), a.count));
  for (uint32_t i = 0; i < a.count; ++i) a.elements[i] = d.source(*elements[i], type);
  d.insn().execute = async_store;
}

struct BulkStoreDetail final : Detail {
  AddressOperand to;
  Slot size;
  bool size_has_64_bits = true;
};

Outcome bulk_store(Execution& x, const Insn& insn) {
  const auto& a = static_cast<const BulkStoreDetail&>(*insn.detail);
  x.for_lanes([&](int lane) {
    const uint64_t size =
        a.size_has_64_bits ? x.source<uint64_t>(a.size)[lane] : x.source<uint32_t>(a.size)[lane];
    constexpr uint64_t kMaxBytes = 16777216;
    if (size % 8 != 0 || size > kMaxBytes)
      x.fault(
          fmt::format("st.bulk of {} bytes; must be a multiple of 8, at most {}", size, kMaxBytes),
          lane);
    if (size == 0) return;
    const uint32_t bytes = static_cast<uint32_t>(size);
    const MemoryAt at = locate(x, a.to.space, a.to.at(x, lane), bytes, 8, lane);
    if (at.space != Space::kShared) x.fault("st.bulk needs an address of shared memory", lane);
    std::memset(bytes_to_write(x, at, bytes, AccessKind::kWrite, lane), 0, bytes);
  });
  return Outcome::kNext;
}

}  // namespace

void check_async_reduction(Decode& d, AtomicOp op, Type type) {
  const bool word = type == Type::kU32 || type == Type::kS32;
  const bool known =
      (op == AtomicOp::kAdd && (word || type == Type::kU64)) ||
      ((op == AtomicOp::kMin || op == AtomicOp::kMax) && word) ||
      ((op == AtomicOp::kInc || op == AtomicOp::kDec) && type == Type::kU32) ||
      ((op == AtomicOp::kAnd || op == AtomicOp::kOr || op == AtomicOp::kXor) && type == Type::kB32);
  if (!known) d.fail(fmt::format("this operation does not exist for type .{}", name_of(type)));
}

void decode_st_async(Decode& d) {
  d.modifiers().take("async");
  d.modifiers().take("weak");
  auto* a = d.make_detail<AsyncStoreDetail>();
  a->count = take_vector(d);
  const Type type = d.modifiers().take_type();
  const unsigned bytes = bytes_of(type);
  if ((bytes != 4 && bytes != 8) || bytes * a->count > kMaxAsyncBytes)
    d.fail(fmt::format("st.async of {} element(s) of {} bytes; needs 4 or 8 bytes each, at most 16",
                       a->count, bytes));
  decode_async(d, *a, type);
}

void decode_red_async(Decode& d) {
  d.modifiers().take("async");
  if (!d.modifiers().take("relaxed") || !d.modifiers().take("cluster"))
    d.fail("red.async needs .relaxed.cluster");
  auto* a = d.make_detail<AsyncStoreDetail>();
  const AtomicOp op = take_atomic_op(d);
  const Type type = d.modifiers().take_type();
  check_async_reduction(d, op, type);
  a->update = atomic_update(op, type, false).shared;
  decode_async(d, *a, type);
}

void decode_st_bulk(Decode& d) {
  d.modifiers().take("bulk");
  d.modifiers().take("weak");
  const bool shared = d.modifiers().take("shared::cta") || d.modifiers().take("shared");
  d.expect_operands(3, 3);
  if (d.immediate(2) != 0u) d.fail("the value of st.bulk must be the literal 0");
  auto* a = d.make_detail<BulkStoreDetail>();
  a->to = take_address(d, d.operand(0), {shared ? Space::kShared : Space::kGeneric, true});
  a->size_has_64_bits = d.width_of(d.operand(1)) != 4;
  a->size = d.source(1, a->size_has_64_bits ? Type::kU64 : Type::kU32);
  d.insn().execute = bulk_store;
}

}  // namespace ptxsim
