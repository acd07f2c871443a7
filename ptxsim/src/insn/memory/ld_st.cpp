// ld, ld.global.nc, ldu, st, st.async.release (PTX ISA 9.0, "Data Movement and Conversion
// Instructions: ld", "ld.global.nc", "ldu", "st", "st.async").
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "insn/memory/elements.hpp"
#include "insn/memory/memory.hpp"
#include "insn/memory/warp_access.hpp"
#include "machine/registers/undefined.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kMostAccessBytes = 32;

AccessKind access_kind(MemoryOrder order, AccessKind weak) {
  return is_strong(order) ? AccessKind::kAtomic : weak;
}

void note_unwritten(const Execution& x, const AccessDetail& a, const MemoryAt& at,
                    uint32_t unwritten, int lane) {
  const std::string read = text_of_read(x, at, a.bytes(), unwritten);
  for (uint32_t i = 0; i < a.count; ++i)
    if (a.elements[i].present())
      note_undefined(x, a.elements[i], lane, a.element_bytes, is_signed(a.type),
                     unwritten >> (i * a.element_bytes), read);
}

// The undefined bytes of what `lane` stores, a bit each. A store to global memory of nothing else
// is a Fault: the kernel was to compute something.
uint32_t unknown_of_stored(const Execution& x, const AccessDetail& a, Space space, int lane) {
  uint32_t unknown = 0;
  for (uint32_t i = 0; i < a.count; ++i)
    unknown |= undefined_bytes(x, a.elements[i], a.element_bytes, lane) << (i * a.element_bytes);
  if (space == Space::kGlobal && unknown == (1ull << a.bytes()) - 1)
    refuse_undefined(x, a.elements[0], lane);
  return unknown;
}

// All elements of each lane, which lie `offsets[lane]` behind `from`.
void load_lanes(const Execution& x, const AccessDetail& a, const std::byte* from,
                const std::array<uint32_t, kWarpSize>& offsets) {
  for (uint32_t i = 0; i < a.count; ++i)
    if (a.elements[i].present())
      load_lanes(x, a.load, from + i * a.element_bytes, offsets, x.registers + a.elements[i].at);
}

// An ordinary load of such memory, every byte of which has been written; false: it is another.
bool load_own_shared(const Execution& x, const AccessDetail& a) {
  SharedOffsets offsets;
  if (is_strong(a.order) || !find_own_shared(x, a, offsets)) return false;
  const uint32_t bytes = a.bytes();
  if (x.machine.options().check_uninitialized && !all_written(x, offsets, bytes)) return false;
  x.tell([&](Observer& o) { o.shared_reads(x, x.mask, x.cta, offsets, bytes); });
  load_lanes(x, a, x.cta.shared.at(0), offsets.of_lane);
  return true;
}

// The same of global memory.
bool load_global(const Execution& x, const AccessDetail& a) {
  GlobalReads reads;
  if (is_strong(a.order) || !find_global_reads(x, a, reads)) return false;
  MemoryAt at;
  at.scope = a.scope;
  at.element_bytes = static_cast<uint8_t>(a.element_bytes);
  at.non_coherent = a.non_coherent;
  x.cluster.observers.tell_of_global_access(
      [&](Observer& o) { o.global_reads(x, x.mask, reads.addresses.data(), at, a.bytes()); });
  load_lanes(x, a, reads.from, reads.offsets);
  SectorCounter sectors;
  x.for_lanes([&](int lane) { sectors.add(reads.addresses[static_cast<size_t>(lane)]); });
  x.machine.stats().l2_read_bytes += sectors.bytes();
  return true;
}

Outcome load(Execution& x, const Insn& insn) {
  const auto& a = static_cast<const AccessDetail&>(*insn.detail);
  if (load_own_shared(x, a) || load_global(x, a)) return Outcome::kNext;
  const AccessKind kind = access_kind(a.order, AccessKind::kRead);
  const uint32_t bytes = a.bytes();
  SectorCounter sectors;
  x.for_lanes([&](int lane) {
    MemoryAt at = locate(x, a.address.space, a.address.at(x, lane), bytes, bytes, lane);
    at.scope = a.scope;
    at.element_bytes = static_cast<uint8_t>(a.element_bytes);
    at.non_coherent = a.non_coherent;
    uint32_t unwritten = 0;
    at.unwritten = &unwritten;
    const std::byte* from = bytes_to_read(x, at, bytes, kind, lane);
    sectors.add(at);
    for (uint32_t i = 0; i < a.count; ++i)
      if (a.elements[i].present())
        a.load(from + i * a.element_bytes, x.registers + a.elements[i].at, lane);
    if (unwritten != 0) note_unwritten(x, a, at, unwritten, lane);
    if (is_strong(a.order)) tell_of_strong_read(x, lane, at, a.order);
  });
  x.machine.stats().l2_read_bytes += sectors.bytes();
  return Outcome::kNext;
}

// The same of a store.
bool store_own_shared(const Execution& x, const AccessDetail& a) {
  SharedOffsets offsets;
  if (is_strong(a.order) || a.needs_global || x.warp.undefined != nullptr ||
      !find_own_shared(x, a, offsets))
    return false;
  const uint32_t bytes = a.bytes();
  std::array<std::byte, kWarpSize * kMostAccessBytes> values;
  for (uint32_t i = 0; i < a.count; ++i)
    x.for_lanes([&](int lane) {
      a.store(x.source<std::byte>(a.elements[i]), lane,
              values.data() + bytes * static_cast<uint32_t>(lane) + i * a.element_bytes);
    });
  x.tell([&](Observer& o) { o.shared_stores(x, x.mask, x.cta, offsets, bytes, values.data()); });
  SharedMemory& shared = x.cta.shared;
  x.for_lanes([&](int lane) {
    std::memcpy(shared.at(offsets[lane]), values.data() + bytes * static_cast<uint32_t>(lane),
                bytes);
    shared.mark_written(offsets[lane], bytes);
  });
  return true;
}

Outcome store(Execution& x, const Insn& insn) {
  const auto& a = static_cast<const AccessDetail&>(*insn.detail);
  if (store_own_shared(x, a)) return Outcome::kNext;
  const AccessKind kind = access_kind(a.order, AccessKind::kWrite);
  const uint32_t bytes = a.bytes();
  SectorCounter sectors;
  x.for_lanes([&](int lane) {
    if (x.warp.undefined != nullptr) refuse_undefined(x, a.address.base, lane);
    MemoryAt at = locate(x, a.address.space, a.address.at(x, lane), bytes, bytes, lane);
    if (a.needs_global && at.space != Space::kGlobal)
      x.fault("st.async.release needs an address of global memory", lane);
    std::byte value[kMostAccessBytes];
    for (uint32_t i = 0; i < a.count; ++i)
      a.store(x.source<std::byte>(a.elements[i]), lane, value + i * a.element_bytes);
    at.scope = a.scope;
    at.element_bytes = static_cast<uint8_t>(a.element_bytes);
    at.value = value;
    const uint32_t unknown =
        x.warp.undefined == nullptr ? 0 : unknown_of_stored(x, a, at.space, lane);
    std::memcpy(bytes_to_write(x, at, bytes, kind, lane), value, bytes);
    if (unknown != 0) forget_bytes(x, at, unknown);
    sectors.add(at);
    if (is_strong(a.order)) tell_of_strong_write(x, lane, at, a.order, false);
  });
  x.machine.stats().l2_write_bytes += sectors.bytes();
  return Outcome::kNext;
}

struct Strength {
  MemoryOrder order = MemoryOrder::kWeak;
  Scope scope = Scope::kNone;
};

// Takes .mmio.relaxed.sys; for st.async and red.async .mmio.release.sys.
void take_mmio(Decode& d, bool is_legal) {
  if (!d.modifiers().take("mmio")) return;
  if (!is_legal)
    d.fail(d.modifiers().has("async") ? ".mmio needs .release" : ".mmio needs .relaxed");
  if (!d.modifiers().has("sys")) d.fail(".mmio needs the scope .sys");
}

// .weak .volatile .relaxed.scope .mmio.relaxed.sys, and .acquire.scope or .release.scope.
Strength take_order(Decode& d, const char* ordered, MemoryOrder order) {
  const int which = d.modifiers().take_one_of({"weak", "volatile", "relaxed", ordered});
  take_mmio(d, which == (d.modifiers().has("async") ? 3 : 2));
  // "ld.volatile has the same memory synchronization semantics as ld.relaxed.sys."
  if (which < 2) return which == 1 ? Strength{MemoryOrder::kRelaxed, Scope::kSys} : Strength{};
  const std::optional<Scope> scope = take_scope(d);
  if (!scope)
    d.fail(fmt::format(".{} needs a scope: .cta, .cluster, .gpu or .sys",
                       which == 2 ? "relaxed" : ordered));
  return {which == 2 ? MemoryOrder::kRelaxed : order, *scope};
}

Type take_memory_type(Decode& d) {
  const Type type = d.modifiers().take_type();
  switch (type) {
    case Type::kB8:
    case Type::kB16:
    case Type::kB32:
    case Type::kB64:
    case Type::kB128:
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kS8:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64:
    case Type::kF32:
    case Type::kF64:
      return type;
    case Type::kNone:
      d.fail("a type is missing");
    default:
      d.fail(fmt::format("type .{} is not one of ld and st", name_of(type)));
  }
}

// A parameter's neighbours in the frame are none of its business.
void refuse_outside_parameter(Decode& d, const Operand& address, uint32_t bytes) {
  const Operand& base = address.parts.front();
  if (base.kind != Operand::Kind::kSymbol) return;
  const Variable& variable = d.entry().variables[base.symbol];
  if (variable.in_frame && (address.bits > variable.bytes || variable.bytes - address.bits < bytes))
    d.fail(fmt::format("access of {} bytes at offset {} of parameter {}, which has {} bytes", bytes,
                       static_cast<int64_t>(address.bits), variable.name, variable.bytes));
}

bool may_be_global(AddressSpace space) {
  return space.space == Space::kGlobal || space.space == Space::kGeneric;
}

// Common to ld and st: the shape of an access. `operand` holds the registers.
AccessDetail* take_access(Decode& d, AddressSpace space, Strength strength, size_t operand,
                          size_t address) {
  auto* a = d.make_detail<AccessDetail>();
  const MemoryOrder order = a->order = strength.order;
  a->scope = strength.scope;
  a->count = take_vector(d);
  a->type = take_memory_type(d);
  a->element_bytes = bytes_of(a->type);
  a->address = take_address(d, d.operand(address), space);
  refuse_outside_parameter(d, d.operand(address), a->bytes());
  const bool any_global = may_be_global(space);
  const uint32_t bytes = a->bytes();
  if (bytes > kMostAccessBytes || (a->count == 8 && a->element_bytes != 4) ||
      (a->count > 1 && a->element_bytes == 16) || (bytes > 16 && !any_global))
    d.fail(
        fmt::format("a vector of {} elements of {} bytes; at most 16 bytes, or .v8 of 4 and .v4 "
                    "of 8 bytes of global memory",
                    a->count, a->element_bytes));
  if (is_strong(order) && (space.space == Space::kConst || space.space == Space::kParam ||
                           (space.space == Space::kLocal && !d.modifiers().has("volatile"))))
    d.fail("a strong operation needs .global, .shared or generic addressing");
  const auto elements = d.elements(operand);
  if (elements.size() != a->count)
    d.fail(fmt::format("{} registers for {} elements", elements.size(), a->count));
  return a;
}

// Registers of a float type have just its width; others may be wider.
bool wider_ok(Type type) { return !is_float(type); }

void decode_load(Decode& d, Strength strength, AddressSpace space, bool non_coherent) {
  AccessDetail* a = take_access(d, space, strength, 0, 1);
  a->non_coherent = non_coherent;
  take_cache_policy(d, 2);
  const auto elements = d.elements(0);
  unsigned width = 0;
  for (uint32_t i = 0; i < a->count; ++i) {
    a->elements[i] = d.destination(*elements[i], a->type, wider_ok(a->type));
    if (!a->elements[i].present()) continue;
    const unsigned own = d.width_of(*elements[i]);
    if (width != 0 && own != width) d.fail("the registers of a vector must have one width");
    width = own;
  }
  if (width == 0 && a->count == 1) d.fail("a load needs a destination");
  a->load =
      load_element(a->element_bytes, is_signed(a->type), width == 0 ? a->element_bytes : width);
  if (a->load == nullptr)
    d.fail(fmt::format("{} bytes cannot be loaded into registers of {} bytes", a->element_bytes,
                       width));
  d.insn().execute = load;
}

}  // namespace

void decode_ld(Decode& d) {
  d.modifiers().take_performance_hints();
  const bool non_coherent = d.modifiers().take("nc");
  const Strength strength = take_order(d, "acquire", MemoryOrder::kAcquire);
  const AddressSpace space = take_space(d);
  if (non_coherent && (space.space != Space::kGlobal || is_strong(strength.order)))
    d.fail("ld.nc needs .global and no memory order");
  decode_load(d, strength, space, non_coherent);
}

void decode_ldu(Decode& d) {
  const AddressSpace space = take_space(d);
  if (space.space != Space::kGlobal && space.space != Space::kGeneric)
    d.fail("ldu needs .global or generic addressing");
  decode_load(d, {}, space, true);  // "read-only data", as with .nc
}

void decode_st(Decode& d) {
  const bool async = d.modifiers().has("async");
  if (async && !d.modifiers().has("release")) return decode_st_async(d);
  if (d.modifiers().has("bulk")) return decode_st_bulk(d);
  if (!async) d.modifiers().take_performance_hints();
  const Strength strength = take_order(d, "release", MemoryOrder::kRelease);
  if (async) check_async_release(d, strength.scope);
  const AddressSpace space = take_space(d);
  AccessDetail* a = take_access(d, space, strength, 1, 0);
  a->needs_global = async;
  if (async && (a->count > 1 || a->element_bytes > 8 || !may_be_global(space)))
    d.fail("st.async.release stores one element of at most 8 bytes to global memory");
  if (a->address.space.space == Space::kConst || a->address.space.space == Space::kParam)
    d.fail("st cannot write to the constant space or the kernel's parameters");
  take_cache_policy(d, 2);
  const auto elements = d.elements(1);
  unsigned width = 0;
  for (uint32_t i = 0; i < a->count; ++i) {
    a->elements[i] = d.source(*elements[i], a->type, wider_ok(a->type));
    const unsigned own =
        d.width_of(*elements[i]) == 0 ? a->element_bytes : d.width_of(*elements[i]);
    if (width != 0 && own != width) d.fail("the registers of a vector must have one width");
    width = own;
  }
  a->store = store_element(a->element_bytes, width);
  d.insn().execute = store;
}

}  // namespace ptxsim
