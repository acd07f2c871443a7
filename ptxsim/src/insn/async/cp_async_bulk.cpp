// cp.async.bulk and cp.reduce.async.bulk of consecutive bytes (PTX ISA 9.0, "cp.async.bulk",
// "cp.reduce.async.bulk").
#include <fmt/format.h>

#include <cstring>

#include "insn/async/cp.hpp"
#include "insn/memory/atom_red.hpp"

namespace ptxsim {
namespace {

struct BulkDetail : Detail {
  LoadRoute route;              // loads
  GlobalOperand global;         // source of loads, destination of stores
  SharedOperand shared_source;  // stores, and copies between CTAs
  Slot size;
  Slot byte_mask;                  // .cp_mask of stores
  UpdateElement update = nullptr;  // reductions
  uint32_t element_bytes = 0;
};
const BulkDetail& detail_of(const Insn& insn) {
  return static_cast<const BulkDetail&>(*insn.detail);
}

uint32_t checked_size(const Execution& x, const BulkDetail& detail, int lane) {
  const uint32_t size = x.source<uint32_t>(detail.size)[lane];
  check_multiple_of_16(x, "size of a bulk copy", size, lane);
  if (size == 0) x.fault("bulk copy of 0 bytes; needs at least 16 (R14)", lane);
  return size;
}

Outcome execute_load(Execution& x, const Insn& insn) {
  const BulkDetail& detail = detail_of(insn);
  x.for_lanes([&](int lane) {
    const uint32_t size = checked_size(x, detail, lane);
    const uint64_t source = global_address_of(x, detail.global, lane);
    check_multiple_of_16(x, "source address of a bulk copy", source, lane);
    const auto targets = route_load(x, lane, detail.route, size, 16);
    x.machine.stats().l2_read_bytes += size;
    start_load(x, lane, targets,
               {size,
                size,
                AccessKind::kWrite,
                [source, size](Cta& cta, uint32_t offset) {
                  std::memcpy(cta.shared.at(offset), cta.machine.global().read(source, size), size);
                  cta.shared.mark_written(offset, size);
                },
                nullptr,
                nullptr,
                {{{source, size}}}});
  });
  return Outcome::kNext;
}

void reduce(std::byte* memory, const std::byte* values, uint32_t bytes, UpdateElement update,
            uint32_t element) {
  for (uint32_t i = 0; i < bytes; i += element) update(memory + i, values + i, nullptr);
}

// shared::cta -> shared::cluster.
Outcome execute_between(Execution& x, const Insn& insn) {
  const BulkDetail& detail = detail_of(insn);
  x.for_lanes([&](int lane) {
    const uint32_t size = checked_size(x, detail, lane);
    const SharedAt source = locate(x, detail.shared_source, lane, size, 16);
    const auto targets = route_load(x, lane, detail.route, size, 16);
    if (targets[0].cta == &x.cta)
      x.fault(
          "the destination of a copy from shared::cta to shared::cluster must be in another CTA "
          "(R14)",
          lane);
    const LoadTarget from{source.cta, source.offset, nullptr, 0};
    const auto write = [&from_cta = *source.cta, from_offset = source.offset, size,
                        update = detail.update,
                        element = detail.element_bytes](Cta& cta, uint32_t offset) {
      check_source(from_cta, from_offset, size);
      if (update != nullptr) {
        check_source(cta, offset, size);
        return reduce(cta.shared.at(offset), from_cta.shared.at(from_offset), size, update,
                      element);
      }
      std::memcpy(cta.shared.at(offset), from_cta.shared.at(from_offset), size);
      cta.shared.mark_written(offset, size);
    };
    start_load(x, lane, targets,
               {size, size, detail.update != nullptr ? AccessKind::kAtomic : AccessKind::kWrite,
                write, nullptr, &from});
  });
  return Outcome::kNext;
}

std::vector<std::byte> read_shared(Cta& cta, uint32_t offset, uint32_t size) {
  check_source(cta, offset, size);
  return {cta.shared.at(offset), cta.shared.at(offset) + size};
}

void write_global(GlobalMemory& global, uint64_t to, const std::vector<std::byte>& bytes,
                  uint16_t byte_mask) {
  const uint32_t size = static_cast<uint32_t>(bytes.size());
  if (byte_mask == 0xffff) {
    std::memcpy(global.write(to, size), bytes.data(), size);
    return;
  }
  for (uint32_t i = 0; i < size; ++i)
    if ((byte_mask >> i % 16 & 1) != 0) *global.write(to + i, 1) = bytes[i];
}

// What a store with a byte mask writes, for observers.
GlobalPart bytes_written(const Execution& x, uint64_t to, uint32_t size, uint16_t byte_mask) {
  GlobalPart part;
  if (!x.cluster.observers.any_of_global_accesses()) return part;
  if (byte_mask == 0xffff) return {{{to, size}}};
  for (uint32_t i = 0; i < size; ++i)
    if ((byte_mask >> i % 16 & 1) != 0) part.ranges.push_back({to + i, 1});
  return part;
}

Outcome execute_store(Execution& x, const Insn& insn) {
  const BulkDetail& detail = detail_of(insn);
  x.for_lanes([&](int lane) {
    const uint32_t size = checked_size(x, detail, lane);
    const SharedAt source = locate(x, detail.shared_source, lane, size, 16);
    const uint64_t to = global_address_of(x, detail.global, lane);
    check_multiple_of_16(x, "destination address of a bulk copy", to, lane);
    const uint16_t mask =
        detail.byte_mask.present() ? x.source<uint16_t>(detail.byte_mask)[lane] : 0xffff;
    Store store;
    store.offset = source.offset;
    store.shared_bytes = store.global_bytes = size;
    if (detail.update != nullptr) store.access = AccessKind::kAtomic;
    store.global = bytes_written(x, to, size, mask);
    store.read = [offset = source.offset, size](Cta& cta) {
      return read_shared(cta, offset, size);
    };
    store.write = [to, mask, update = detail.update, element = detail.element_bytes](
                      GlobalMemory& global, const std::vector<std::byte>& bytes) {
      if (update == nullptr) return write_global(global, to, bytes, mask);
      global.read(to, bytes.size());  // that somebody has written them
      reduce(global.write(to, bytes.size()), bytes.data(), static_cast<uint32_t>(bytes.size()),
             update, element);
    };
    start_store(x, lane, std::move(store));
  });
  return Outcome::kNext;
}

void decode_store(Decode& d, BulkDetail& detail, bool may_mask) {
  if (!d.modifiers().take("global") || !d.modifiers().take("shared::cta"))
    d.fail("a bulk copy with .bulk_group goes from .shared::cta to .global");
  detail.global = global_operand(d, 0);
  detail.shared_source = shared_operand(d, 1, SharedForm::kCta);
  detail.size = d.source(2, Type::kU32);
  size_t next = 3;
  take_cache_hint(d, next);
  if (may_mask && d.modifiers().take("cp_mask")) detail.byte_mask = d.source(next++, Type::kB16);
  d.expect_operands(next, next);
  d.insn().execute = execute_store;
}

void decode_between(Decode& d, BulkDetail& detail) {
  detail.route.destination = shared_operand(d, 0, SharedForm::kCluster);
  detail.shared_source = shared_operand(d, 1, SharedForm::kCta);
  detail.size = d.source(2, Type::kU32);
  detail.route.barrier = shared_operand(d, 3, SharedForm::kCluster);
  d.expect_operands(4, 4);
  d.insn().execute = execute_between;
}

void decode_load(Decode& d, BulkDetail& detail, SharedForm form) {
  detail.route.destination = shared_operand(d, 0, form);
  detail.global = global_operand(d, 1);
  detail.size = d.source(2, Type::kU32);
  detail.route.barrier = shared_operand(d, 3, form);
  size_t next = 4;
  if (d.modifiers().take("multicast::cluster")) {
    if (form == SharedForm::kCta)
      d.fail(".multicast::cluster needs a destination in .shared::cluster");
    detail.route.multicast = d.source(next++, Type::kB16);
  }
  take_cache_hint(d, next);
  d.expect_operands(next, next);
  d.insn().execute = execute_load;
}

void require_complete_tx(Decode& d) {
  if (!d.modifiers().take("mbarrier::complete_tx::bytes"))
    d.fail("needs a completion mechanism: .mbarrier::complete_tx::bytes or .bulk_group");
}

// The tables of "cp.reduce.async.bulk": which operations exist for which types.
void take_reduction(Decode& d, BulkDetail& detail, bool to_global) {
  const AtomicOp op = take_atomic_op(d);
  const Type type = d.modifiers().take_type();
  const bool half = type == Type::kF16 || type == Type::kBf16;
  if (half && op == AtomicOp::kAdd && !d.modifiers().take("noftz"))
    d.fail(".add of f16 and bf16 needs .noftz");
  const bool exists_for_shared = type == Type::kU32 || type == Type::kS32 || type == Type::kB32 ||
                                 (type == Type::kU64 && op == AtomicOp::kAdd);
  const bool exists = op != AtomicOp::kExch && op != AtomicOp::kCas &&
                      (to_global || exists_for_shared) &&
                      !(type == Type::kS64 && op == AtomicOp::kAdd) && bytes_of(type) <= 8;
  // .shared: without flushing of subnormals. The manual says that .add.f32 flushes; an H200 does
  // not.
  detail.update = atomic_update(op, type, true).shared;
  if (!exists || detail.update == nullptr)
    d.fail(fmt::format("this reduction of type .{} does not exist for a destination in {} memory",
                       name_of(type), to_global ? "global" : "shared"));
  detail.element_bytes = bytes_of(type);
}

}  // namespace

void decode_bulk_copy(Decode& d) {
  Modifiers& modifiers = d.modifiers();
  auto* detail = d.make_detail<BulkDetail>();
  if (modifiers.take("bulk_group")) return decode_store(d, *detail, true);
  require_complete_tx(d);
  const bool to_cluster = modifiers.take("shared::cluster");
  const bool names_cta = modifiers.take("shared::cta");
  if (modifiers.take("global")) {
    if (to_cluster == names_cta) d.fail("needs one destination: .shared::cluster or .shared::cta");
    return decode_load(d, *detail, to_cluster ? SharedForm::kCluster : SharedForm::kCta);
  }
  if (!to_cluster || !names_cta) d.fail("needs a source: .global or .shared::cta");
  decode_between(d, *detail);
}

void decode_bulk_reduce(Decode& d) {
  Modifiers& modifiers = d.modifiers();
  auto* detail = d.make_detail<BulkDetail>();
  if (modifiers.take("bulk_group")) {
    take_reduction(d, *detail, true);
    return decode_store(d, *detail, false);
  }
  require_complete_tx(d);
  if (!modifiers.take("shared::cluster") || !modifiers.take("shared::cta"))
    d.fail("a reduction with an mbarrier goes from .shared::cta to .shared::cluster");
  take_reduction(d, *detail, false);
  decode_between(d, *detail);
}

}  // namespace ptxsim
