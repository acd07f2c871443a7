// atom, red and red.async.release (PTX ISA 9.0, "Parallel Synchronization and Communication
// Instructions: atom", "red", "red.async"). Lanes are performed in order, each as a whole.
#include "insn/memory/atom_red.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "insn/memory/memory.hpp"
#include "machine/registers/undefined.hpp"

namespace ptxsim {
namespace {

struct AtomicDetail final : Detail {
  AddressOperand address;
  MemoryOrder order = MemoryOrder::kRelaxed;
  Scope scope = Scope::kGpu;
  AtomicUpdate update;
  uint32_t element_bytes = 0;
  uint32_t count = 1;
  bool is_reduction = false;  // red: gives nothing back, and its read acquires nothing
  bool needs_global = false;  // red.async.release
  std::array<Slot, kMaxVector> result{}, operand{};
  Slot third;  // cas
};

constexpr uint32_t kMostBytes = 16;  // of a vector, and of .b128

// What unwritten memory may hold, besides what the operation compares it with.
constexpr int kContents[] = {0x00, 0xff, 0x3c, 0x7f, 0xfe};

// Bytes of an updated element, a bit each, that depend on those in `unwritten`: of an exchange
// none, of a sum all.
uint32_t unknown_of_updated(UpdateElement update, const std::byte* old, uint32_t unwritten,
                            uint32_t size, const std::byte* operand, const std::byte* third) {
  std::byte first[kMostBytes]{};
  uint32_t unknown = 0;
  bool is_first = true;
  const auto try_with = [&](auto&& content) {
    std::byte updated[kMostBytes]{};
    for (uint32_t i = 0; i < size; ++i)
      updated[i] = (unwritten >> i & 1) != 0 ? content(i) : old[i];
    update(updated, operand, third);
    if (is_first) std::copy_n(updated, size, first);
    is_first = false;
    for (uint32_t i = 0; i < size; ++i)
      unknown |= static_cast<uint32_t>(updated[i] != first[i]) << i;
  };
  for (const int pattern : kContents)
    try_with([&](uint32_t) { return static_cast<std::byte>(pattern); });
  try_with([&](uint32_t i) { return operand[i]; });
  return unknown;
}

// Where part of the memory was never written, the old value is undefined, and so is the new one as
// far as it depends on that. Global memory that then holds nothing known is a Fault, as where such
// a value is stored.
void follow_unwritten(Execution& x, const AtomicDetail& a, const MemoryAt& at, uint32_t unwritten,
                      uint32_t unknown, int lane) {
  const uint32_t size = a.element_bytes, bytes = size * a.count;
  if (at.space == Space::kGlobal && unknown == (1ull << bytes) - 1)
    x.fault(text_of_unwritten(x, at, bytes, unwritten), lane);
  if (at.space == Space::kShared)
    at.owner->shared.mark_written(static_cast<uint32_t>(at.offset), bytes);
  forget_bytes(x, at, unknown);
  for (uint32_t i = 0; i < a.count; ++i)
    if (a.result[i].present())
      note_undefined(x, a.result[i], lane, size, false, unwritten >> (i * size),
                     text_of_read(x, at, bytes, unwritten));
}

Outcome atomic(Execution& x, const Insn& insn) {
  const auto& a = static_cast<const AtomicDetail&>(*insn.detail);
  const uint32_t size = a.element_bytes, bytes = size * a.count;
  SectorCounter sectors;
  x.for_lanes([&](int lane) {
    MemoryAt at = locate(x, a.address.space, a.address.at(x, lane), bytes, bytes, lane);
    at.scope = a.scope;
    at.element_bytes = static_cast<uint8_t>(size);
    if (a.needs_global && at.space != Space::kGlobal)
      x.fault("red.async.release needs an address of global memory", lane);
    if (at.space == Space::kShared && a.count > 1)
      x.fault("vector form of an atomic operation on shared memory; needs global memory", lane);
    uint32_t unwritten = 0, unknown = 0;
    at.unwritten = &unwritten;
    std::byte* memory = bytes_to_update(x, at, bytes, lane);
    sectors.add(at);
    const UpdateElement update = at.space == Space::kGlobal ? a.update.global : a.update.shared;
    const size_t in_lane = size_t{size} * static_cast<size_t>(lane);
    const std::byte* third = a.third.present() ? x.source<std::byte>(a.third) + in_lane : nullptr;
    for (uint32_t i = 0; i < a.count; ++i) {
      std::byte old[kMostBytes]{};
      std::memcpy(old, memory + i * size, size);
      if (const uint32_t of_element = unwritten >> (i * size) & ((1u << size) - 1); of_element != 0)
        unknown |= unknown_of_updated(update, old, of_element, size,
                                      x.source<std::byte>(a.operand[i]) + in_lane, third)
                   << (i * size);
      update(memory + i * size, x.source<std::byte>(a.operand[i]) + in_lane, third);
      // The result last: its register may be that of an operand.
      if (a.result[i].present())
        std::memcpy(x.destination<std::byte>(a.result[i]) + in_lane, old, size);
    }
    if (unwritten != 0) follow_unwritten(x, a, at, unwritten, unknown, lane);
    if (!a.is_reduction) tell_of_strong_read(x, lane, at, a.order);
    tell_of_strong_write(x, lane, at, a.order, true);
  });
  x.machine.stats().l2_write_bytes += sectors.bytes();
  return Outcome::kNext;
}

MemoryOrder take_atomic_order(Decode& d, bool is_reduction) {
  const int sem = d.modifiers().take_one_of({"relaxed", "acquire", "release", "acq_rel"});
  switch (sem) {
    case 1:
    case 3:
      if (is_reduction) d.fail("red has .relaxed and .release only");
      return sem == 1 ? MemoryOrder::kAcquire : MemoryOrder::kAcqRel;
    case 2:
      return MemoryOrder::kRelease;
    default:
      return MemoryOrder::kRelaxed;
  }
}

// .noftz is required just for 16-bit floats.
void check_noftz(Decode& d, Type type) {
  const bool is_half =
      type == Type::kF16 || type == Type::kF16x2 || type == Type::kBf16 || type == Type::kBf16x2;
  if (d.modifiers().take("noftz") == is_half) return;
  d.fail(fmt::format("type .{} {} .noftz", name_of(type), is_half ? "needs" : "does not have"));
}

// red.async{.mmio}.release.scope{.global}.op.type: additions by the manual, to ptxas the others of
// red.async, too.
void check_async(Decode& d, const AtomicDetail& a, AddressSpace space, AtomicOp op, Type type) {
  check_async_release(d, a.scope);
  if (d.modifiers().take("mmio") && a.scope != Scope::kSys) d.fail(".mmio needs the scope .sys");
  if (space.space == Space::kShared) d.fail("red.async.release needs global memory");
  if (op != AtomicOp::kAdd || type != Type::kS64) check_async_reduction(d, op, type);
}

void decode_atomic(Decode& d, bool is_reduction) {
  auto* a = d.make_detail<AtomicDetail>();
  a->is_reduction = is_reduction;
  a->order = take_atomic_order(d, is_reduction);
  a->scope = take_scope(d).value_or(Scope::kGpu);
  const AddressSpace space = take_space(d);
  if (space.space != Space::kGeneric && space.space != Space::kGlobal &&
      space.space != Space::kShared)
    d.fail("an atomic operation needs .global, .shared or generic addressing");
  const AtomicOp op = take_atomic_op(d);
  a->count = take_vector(d);
  const Type type = d.modifiers().take_type();
  if (type == Type::kNone) d.fail("a type is missing");
  a->needs_global = d.modifiers().has("async");
  if (a->needs_global) check_async(d, *a, space, op, type);
  check_noftz(d, type);
  a->element_bytes = bytes_of(type);
  a->update = atomic_update(op, type, a->count > 1);
  const bool vector_ok =
      a->count == 1 ||
      ((type == Type::kF32 && a->count <= 4) ||
       (is_float(type) && type != Type::kF32 && a->element_bytes * a->count <= 16));
  if (a->update.shared == nullptr || !vector_ok || (is_reduction && op >= AtomicOp::kExch))
    d.fail(fmt::format("this operation does not exist for type .{} and {} element(s)",
                       name_of(type), a->count));
  if (a->count > 1 && space.space == Space::kShared) d.fail("vector forms need global memory");

  const size_t first = is_reduction ? 0 : 1;
  a->address = take_address(d, d.operand(first), space);
  take_cache_policy(d, first + (op == AtomicOp::kCas ? 3 : 2));
  const auto operands = d.elements(first + 1);
  if (operands.size() != a->count)
    d.fail(fmt::format("{} source registers for {} elements", operands.size(), a->count));
  for (uint32_t i = 0; i < a->count; ++i) a->operand[i] = d.source(*operands[i], type);
  if (op == AtomicOp::kCas) a->third = d.source(first + 2, type);
  if (!is_reduction) {
    const auto results = d.elements(0);
    if (results.size() != a->count && results[0]->kind != Operand::Kind::kSink)
      d.fail(fmt::format("{} result registers for {} elements", results.size(), a->count));
    for (uint32_t i = 0; i < results.size(); ++i) a->result[i] = d.destination(*results[i], type);
  }
  d.insn().execute = atomic;
}

}  // namespace

void decode_atom(Decode& d) { decode_atomic(d, false); }

void decode_red(Decode& d) {
  if (d.modifiers().has("async") && !d.modifiers().has("release")) return decode_red_async(d);
  decode_atomic(d, true);
}

}  // namespace ptxsim
