// suld, sust and sured on surface objects (PTX ISA 9.0, "Surface Instructions"): bytes, by
// coordinates of which the first counts bytes. Reads are as those of ld.global.nc. Formatted
// accesses (.p), which nvcc does not write, are not modelled.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "insn/image/image_operand.hpp"
#include "insn/memory/atom_red.hpp"
#include "insn/memory/memory_order.hpp"
#include "machine/memory/addresses.hpp"

namespace ptxsim {
namespace {

enum class Outside : uint8_t { kTrap, kClamp, kZero };

struct SurfaceDetail : Detail {
  ImageOperand image;
  Outside outside = Outside::kTrap;
  uint32_t element_bytes = 4;
  uint32_t count = 1;
  std::array<Slot, 4> elements;
  std::array<uint32_t, 4> widths{};  // bytes of a lane's register
  UpdateElement update = nullptr;
  uint32_t bytes() const { return element_bytes * count; }
  // Where a lane's bytes begin in those of 32 lanes of an element's register.
  size_t lane_at(uint32_t element, int lane) const {
    return size_t{widths[element]} * static_cast<size_t>(lane);
  }
};

// The address of a lane's bytes; nothing: outside, with .zero.
std::optional<uint64_t> address_of(const Execution& x, const SurfaceDetail& s, int lane) {
  const Image& image = surface_at(x, s.image, lane);
  const ImageLevel& level = image.levels.front();
  const int64_t row = int64_t{level.extents[0]} * image.format.bytes();
  const bool layered = image.is_layered();
  const std::array<int64_t, 3> most{row - s.bytes(), level.extents[1] - 1,
                                    layered ? level.layers - 1 : level.extents[2] - 1};
  std::array<int64_t, 3> at{};
  for (uint32_t i = 0; i < s.image.count; ++i)
    at[i] = x.source<int32_t>(s.image.coordinates[i])[lane];
  if (layered) at[2] = x.source<uint32_t>(s.image.layer)[lane];
  if (at[0] % s.bytes() != 0)
    x.fault(fmt::format("surface access of {} bytes at byte {} of a row; must be a multiple",
                        s.bytes(), at[0]),
            lane);
  bool inside = true;
  for (size_t i = 0; i < at.size(); ++i) inside = inside && at[i] >= 0 && at[i] <= most[i];
  if (!inside && s.outside == Outside::kZero) return std::nullopt;
  if (!inside && s.outside == Outside::kTrap)
    x.fault(fmt::format("surface access at byte {}, row {}, {} {}; rows have {} bytes, and there "
                        "are {} rows and {} of "
                        "the others (.trap)",
                        at[0], at[1], layered ? "layer" : "slice", at[2], row, most[1] + 1,
                        most[2] + 1),
            lane);
  for (size_t i = 0; i < at.size(); ++i)
    at[i] = std::clamp<int64_t>(at[i], 0, std::max<int64_t>(most[i], 0));
  return level.address + static_cast<uint64_t>(at[0]) +
         static_cast<uint64_t>(at[1]) * level.row_bytes +
         static_cast<uint64_t>(at[2]) * level.slice_bytes;
}

Outcome execute_load(Execution& x, const Insn& insn) {
  const auto& s = static_cast<const SurfaceDetail&>(*insn.detail);
  x.for_lanes([&](int lane) {
    std::array<std::byte, 32> bytes{};
    if (const auto address = address_of(x, s, lane)) {
      MemoryAt at;
      at.offset = *address;
      at.non_coherent = true;
      std::memcpy(bytes.data(), bytes_to_read(x, at, s.bytes(), AccessKind::kRead, lane),
                  s.bytes());
      x.machine.stats().l2_read_bytes += s.bytes();
    }
    for (uint32_t i = 0; i < s.count; ++i) {
      if (!s.elements[i].present()) continue;
      std::byte* to = x.destination<std::byte>(s.elements[i]) + s.lane_at(i, lane);
      std::memset(to, 0, s.widths[i]);
      std::memcpy(to, bytes.data() + i * s.element_bytes, s.element_bytes);
    }
  });
  return Outcome::kNext;
}

Outcome execute_store(Execution& x, const Insn& insn) {
  const auto& s = static_cast<const SurfaceDetail&>(*insn.detail);
  x.for_lanes([&](int lane) {
    const auto address = address_of(x, s, lane);
    if (!address) return;
    std::array<std::byte, 32> bytes{};
    for (uint32_t i = 0; i < s.count; ++i)
      std::memcpy(bytes.data() + i * s.element_bytes,
                  x.source<std::byte>(s.elements[i]) + s.lane_at(i, lane), s.element_bytes);
    MemoryAt at;
    at.offset = *address;
    at.value = bytes.data();
    std::memcpy(bytes_to_write(x, at, s.bytes(), AccessKind::kWrite, lane), bytes.data(),
                s.bytes());
    x.machine.stats().l2_write_bytes += s.bytes();
  });
  return Outcome::kNext;
}

Outcome execute_reduction(Execution& x, const Insn& insn) {
  const auto& s = static_cast<const SurfaceDetail&>(*insn.detail);
  x.for_lanes([&](int lane) {
    const auto address = address_of(x, s, lane);
    if (!address) return;
    MemoryAt at;
    at.offset = *address;
    at.scope = Scope::kGpu;
    at.element_bytes = static_cast<uint8_t>(s.element_bytes);
    std::byte* memory = bytes_to_update(x, at, s.bytes(), lane);
    s.update(memory, x.source<std::byte>(s.elements[0]) + s.lane_at(0, lane), nullptr);
    tell_of_strong_write(x, lane, at, MemoryOrder::kRelaxed, true);
    x.machine.stats().l2_write_bytes += s.bytes();
  });
  return Outcome::kNext;
}

void take_elements(Decode& d, SurfaceDetail& s, size_t index, Type type, bool is_load) {
  const auto elements = d.elements(index);
  if (elements.size() != s.count)
    d.fail(fmt::format("{} registers for {} elements", elements.size(), s.count));
  for (uint32_t i = 0; i < s.count; ++i) {
    s.elements[i] =
        is_load ? d.destination(*elements[i], type, true) : d.source(*elements[i], type, true);
    const unsigned width = d.width_of(*elements[i]);
    s.widths[i] = width == 0 ? s.element_bytes : width;
  }
}

void take_reduction(Decode& d, SurfaceDetail& s, AtomicOp op, Type type) {
  const bool known =
      op == AtomicOp::kAdd ? type == Type::kU32 || type == Type::kS32 || type == Type::kU64
      : op == AtomicOp::kMin || op == AtomicOp::kMax
          ? type == Type::kU32 || type == Type::kS32 || type == Type::kU64 || type == Type::kS64
          : (op == AtomicOp::kAnd || op == AtomicOp::kOr) && type == Type::kB32;
  if (!known) d.fail(fmt::format("this reduction does not exist for type .{}", name_of(type)));
  s.update = atomic_update(op, type, false).global;
  d.insn().execute = execute_reduction;
}

}  // namespace

void decode_surface(Decode& d) {
  auto* s = d.make_detail<SurfaceDetail>();
  Modifiers& m = d.modifiers();
  const bool is_load = d.statement().root == "suld", reduces = d.statement().root == "sured";
  if (m.has("p")) d.fail("formatted surface accesses (.p) are not modelled");
  if (!m.take("b")) d.fail("needs .b");
  AtomicOp op = AtomicOp::kAdd;
  if (reduces)
    op = take_atomic_op(d);
  else
    m.take_one_of({"ca", "cg", "cs", "cv", "wb", "wt"});
  if (reduces)
    s->image = take_image_operand(d, 0, {"1d", "2d", "3d"});
  else
    s->image = take_image_operand(d, is_load ? 1 : 0, {"1d", "2d", "3d", "a1d", "a2d"});
  const int vector = reduces ? -1 : m.take_one_of({"v2", "v4"});
  s->count = vector < 0 ? 1 : vector == 0 ? 2 : 4;
  const Type type = m.take_type();
  s->element_bytes = bytes_of(type);
  const bool bits =
      type == Type::kB8 || type == Type::kB16 || type == Type::kB32 || type == Type::kB64;
  if (!reduces && (!bits || s->bytes() > 16))
    d.fail("a surface access has elements of type .b8 to .b64, of at most 16 bytes in all");
  const int outside = m.take_one_of({"trap", "clamp", "zero"});
  s->outside = outside < 0 ? Outside::kTrap : static_cast<Outside>(outside);
  take_elements(d, *s, is_load ? 0 : 1, type, is_load);
  d.expect_operands(2, 2);
  if (reduces) return take_reduction(d, *s, op, type);
  d.insn().execute = is_load ? execute_load : execute_store;
}

}  // namespace ptxsim
