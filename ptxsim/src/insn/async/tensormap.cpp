// tensormap.replace on a tensor map in global or shared memory, and tensormap.cp_fenceproxy (PTX
// ISA 9.0, "tensormap.replace"). Bits change as ptxas's code changes them; whether the new values
// are legal together is checked when a copy uses the map. 96B swizzling is not modelled.
#include <fmt/format.h>

#include <cstring>

#include "insn/registry.hpp"
#include "insn/traits.hpp"
#include "machine/memory/addresses.hpp"
#include "machine/tensor_map/tensor_map.hpp"

namespace ptxsim {
namespace {

enum class Field : uint8_t {
  kGlobalAddress,
  kRank,
  kBoxDim,
  kGlobalDim,
  kGlobalStride,
  kElementStride,
  kElemtype,
  kInterleave,
  kSwizzleMode,
  kSwizzleAtomicity,
  kFillMode,
};
constexpr const char* kFieldNames[] = {
    "global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
    "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity",
    "fill_mode"};

struct ReplaceDetail : Detail {
  Field field = Field::kRank;
  AddressSpace space;
  Slot base;
  unsigned base_bytes = 8;
  int64_t offset = 0;
  uint32_t ordinal = 0;
  Slot value;
  bool wide = false;  // .b64
};

// Types of .elemtype behind F32_FTZ, F64 and BF16: TF32 is a bit of its own, which no other type
// clears (PTX ISA 9.0, table "Tensormap new_val validity"; ptxas 13.0).
constexpr uint64_t kTf32Type = 11, kPackedType = 13, kF32Code = 7;

void check_at_most(const Execution& x, const char* what, uint64_t value, uint64_t most, int lane) {
  if (value > most)
    x.fault(fmt::format("tensormap.replace .{}: {}; at most {} (R14)", what, value, most), lane);
}

void replace_type(TensorMapRecord& record, uint64_t type) {
  if (type >= kPackedType) return set(record, tensor_map_field::kType, type - 2);
  if (type < kTf32Type) return set(record, tensor_map_field::kType, type);
  set(record, tensor_map_field::kType, type - kTf32Type + kF32Code);
  set(record, tensor_map_field::kTf32, 1);
}

void replace(const Execution& x, TensorMapRecord& record, const ReplaceDetail& detail,
             uint64_t value, int lane) {
  namespace field = tensor_map_field;
  const uint32_t i = detail.ordinal;
  const char* name = kFieldNames[static_cast<int>(detail.field)];
  switch (detail.field) {
    case Field::kGlobalAddress:
      return set_address(record, value);
    case Field::kRank:
      check_at_most(x, name, value, 4, lane);
      return set(record, field::kLastDimension, value);
    case Field::kBoxDim:
      if (value == 0) x.fault("tensormap.replace .box_dim: 0; at least 1 (R14)", lane);
      check_at_most(x, name, value, 256, lane);
      return set(record, field::last_of_box(i), value - 1);
    case Field::kGlobalDim:
      return set(record, field::last_index(i), value - 1);  // 0 stands for 2^32
    case Field::kGlobalStride:
      return set_stride(record, i, value);
    case Field::kElementStride:
      if (value == 0) x.fault("tensormap.replace .element_stride: 0; at least 1 (R14)", lane);
      check_at_most(x, name, value, 8, lane);
      return set(record, field::element_stride(i), value - 1);
    case Field::kElemtype:
      return replace_type(record, value);
    case Field::kInterleave:
      return set(record, field::kInterleave, value);
    case Field::kSwizzleMode:
      set(record, field::kSwizzle96, 0);
      return set(record, field::kSwizzle, value);
    case Field::kSwizzleAtomicity:
      set(record, field::kLarge, 0);
      return set(record, field::kSwizzleAtomicity, value);
    case Field::kFillMode:
      return set(record, field::kFill, value);
  }
}

Outcome execute_replace(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const ReplaceDetail&>(*insn.detail);
  constexpr uint32_t kBytes = sizeof(TensorMapRecord);
  x.for_lanes([&](int lane) {
    const uint64_t base = detail.base_bytes == 4 ? x.source<uint32_t>(detail.base)[lane]
                                                 : x.source<uint64_t>(detail.base)[lane];
    const MemoryAt at =
        locate(x, detail.space, base + static_cast<uint64_t>(detail.offset), kBytes, 128, lane);
    if (at.space != Space::kGlobal && at.space != Space::kShared)
      x.fault("tensormap.replace needs a tensor map in global or shared memory", lane);
    std::byte* bytes = bytes_to_update(x, at, kBytes, lane);
    TensorMapRecord record;
    std::memcpy(&record, bytes, kBytes);
    const uint64_t value = detail.wide ? x.source<uint64_t>(detail.value)[lane]
                                       : x.source<uint32_t>(detail.value)[lane];
    replace(x, record, detail, value, lane);
    std::memcpy(bytes, &record, kBytes);
  });
  return Outcome::kNext;
}

// The greatest value of the fields that take an immediate.
uint64_t greatest(Field field) {
  switch (field) {
    case Field::kElemtype:
      return 15;
    case Field::kInterleave:
      return 2;
    case Field::kFillMode:
      return 1;
    default:
      return 3;
  }
}

void take_value(Decode& d, ReplaceDetail& detail, size_t index) {
  const bool wide = detail.field == Field::kGlobalAddress || detail.field == Field::kGlobalStride;
  detail.wide = d.modifiers().take_one_of({"b32", "b64"}) == 1;
  if (detail.wide != wide)
    d.fail(wide ? "this field needs the type .b64" : "this field needs the type .b32");
  if (detail.field >= Field::kElemtype) {
    const auto value = d.immediate(index);
    if (!value) d.fail("the new value of this field must be an immediate");
    if (*value > greatest(detail.field))
      d.fail(fmt::format("new value {} of .{}; at most {} is modelled", *value,
                         kFieldNames[static_cast<int>(detail.field)], greatest(detail.field)));
  }
  detail.value = d.source(index, wide ? Type::kB64 : Type::kB32);
}

struct CopyDetail : Detail {
  AddressSpace to, from;
  Decode::Address to_address, from_address;
};

uint64_t address_in(const Execution& x, const Decode::Address& a, int lane) {
  const uint64_t base =
      a.base_bytes == 4 ? x.source<uint32_t>(a.base)[lane] : x.source<uint64_t>(a.base)[lane];
  return base + static_cast<uint64_t>(a.offset);
}

// The warp copies together: for observers its first lane stores, and releases to the tensormap
// proxy.
Outcome execute_copy(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const CopyDetail&>(*insn.detail);
  constexpr uint32_t kBytes = sizeof(TensorMapRecord);
  const int lane = x.first_lane();  // one copy for the warp
  const MemoryAt from =
      locate(x, detail.from, address_in(x, detail.from_address, lane), kBytes, 128, lane);
  const MemoryAt to =
      locate(x, detail.to, address_in(x, detail.to_address, lane), kBytes, 128, lane);
  const std::byte* bytes = bytes_to_read(x, from, kBytes, AccessKind::kRead, lane);
  std::memcpy(bytes_to_write(x, to, kBytes, AccessKind::kWrite, lane), bytes, kBytes);
  x.tell([&](Observer& o) {
    o.tensor_maps_released(x, 1u << lane);
    o.lanes_synchronized(x, x.mask);
  });
  return Outcome::kNext;
}

// tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned (PTX
// ISA 9.0, "tensormap.cp_fenceproxy")
void decode_copy(Decode& d) {
  Modifiers& modifiers = d.modifiers();
  for (const char* needed :
       {"global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"})
    if (!modifiers.take(needed)) d.fail(std::string("tensormap.cp_fenceproxy needs .") + needed);
  if (modifiers.take_one_of({"cta", "cluster", "gpu", "sys"}) < 0)
    d.fail("tensormap.cp_fenceproxy needs a scope");
  d.expect_operands(3, 3);
  auto* detail = d.make_detail<CopyDetail>();
  detail->to = {Space::kGlobal, true};
  detail->from = {Space::kShared, true};
  detail->to_address = d.address(0);
  detail->from_address = d.address(1);
  if (d.immediate(2) != sizeof(TensorMapRecord)) d.fail("tensormap.cp_fenceproxy copies 128 bytes");
  d.require_aligned();
  d.insn().execute = execute_copy;
}

void decode_tensormap(Decode& d) {
  Modifiers& modifiers = d.modifiers();
  if (modifiers.take("cp_fenceproxy")) return decode_copy(d);
  if (!modifiers.take("replace") || !modifiers.take("tile") || !modifiers.take("b1024"))
    d.fail("only tensormap.replace.tile on .b1024 is known");
  auto* detail = d.make_detail<ReplaceDetail>();
  const int field = modifiers.take_one_of(
      {"global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
       "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode"});
  if (field < 0) d.fail("tensormap.replace needs a field");
  detail->field = static_cast<Field>(field);
  const int space = modifiers.take_one_of({"global", "shared::cta"});
  detail->space = {space == 0   ? Space::kGlobal
                   : space == 1 ? Space::kShared
                                : Space::kGeneric,
                   true};
  const Decode::Address address = d.address(0);
  detail->base = address.base;
  detail->base_bytes = address.base_bytes;
  detail->offset = address.offset;
  size_t next = 1;
  if (detail->field >= Field::kBoxDim && detail->field <= Field::kElementStride) {
    const auto ordinal = d.immediate(next++);
    const uint64_t count = detail->field == Field::kGlobalStride ? 4 : 5;
    if (!ordinal || *ordinal >= count)
      d.fail(fmt::format("the ordinal must be an immediate below {}", count));
    detail->ordinal = static_cast<uint32_t>(*ordinal);
  }
  take_value(d, *detail, next);
  d.expect_operands(next + 1, next + 1);
  d.insn().execute = execute_replace;
}

constexpr Form kForms[] = {
    {{"cp_fenceproxy"}, traits::kStore.with(Trait::kReads | Trait::kFence | Trait::kTensorMap)}};
constexpr Decoder kDecoders[] = {
    {"tensormap", decode_tensormap, Traits{Trait::kUpdates | Trait::kTensorMap}, kForms}};

}  // namespace

std::span<const Decoder> decoders_tensormap() { return kDecoders; }

}  // namespace ptxsim
