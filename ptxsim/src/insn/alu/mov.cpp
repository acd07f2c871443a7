// mov (PTX ISA 9.0, "mov"): registers, literals, special registers, addresses of variables,
// predicates, and packing and unpacking of vectors.
#include "insn/alu/mov.hpp"

#include <fmt/format.h>

#include <array>

#include "insn/alu/lanes.hpp"
#include "insn/registry.hpp"
#include "insn/traits.hpp"

namespace ptxsim {
namespace {

using Bytes16 = std::array<uint64_t, 2>;

template <class T>
T same(T a) {
  return a;
}

Handler copy_handler(unsigned bytes) {
  switch (bytes) {
    case 1:
      return &each_lane<&same<uint8_t>>;
    case 2:
      return &each_lane<&same<uint16_t>>;
    case 4:
      return &each_lane<&same<uint32_t>>;
    case 8:
      return &each_lane<&same<uint64_t>>;
    default:
      return &each_lane<&same<Bytes16>>;
  }
}

Outcome copy_predicate(Execution& x, const Insn& insn) {
  x.set_predicate(insn.slot[0], x.predicate(insn.slot[1], insn.variant != 0));
  return Outcome::kNext;
}

Outcome read_is_explicit_cluster(Execution& x, const Insn& insn) {
  x.set_predicate(insn.slot[0], volume(x.machine.launch().cluster) > 1 ? kAllLanes : 0);
  return Outcome::kNext;
}

// The clocks count executed warp instructions: deterministic, and they never stand still in a loop
// that polls them.
template <class T>
Outcome read_clock(Execution& x, const Insn& insn) {
  const uint64_t now = x.machine.step() >> (insn.variant != 0 ? 32 : 0);
  T* out = x.destination<T>(insn.slot[0]);
  x.for_lanes([&](int lane) { out[lane] = static_cast<T>(now); });
  return Outcome::kNext;
}

// Element i of a lane's vector is slot[i + 1]; element 0 has the lowest bits.
template <class T, int kCount>
Outcome pack(Execution& x, const Insn& insn) {
  T* out = x.destination<T>(insn.slot[0]);
  for (int i = 0; i < kCount; ++i) {
    const T* in = x.source<T>(insn.slot[i + 1]);
    if (x.mask == kAllLanes) {
      PTXSIM_LANES_INDEPENDENT
      for (int lane = 0; lane < kWarpSize; ++lane) out[lane * kCount + i] = in[lane];
    } else {
      x.for_lanes([&](int lane) { out[lane * kCount + i] = in[lane]; });
    }
  }
  return Outcome::kNext;
}
template <class T, int kCount>
Outcome unpack(Execution& x, const Insn& insn) {
  const T* in = x.source<T>(insn.slot[0]);
  for (int i = 0; i < kCount; ++i) {
    if (!insn.slot[i + 1].present()) continue;
    T* out = x.destination<T>(insn.slot[i + 1]);
    if (x.mask == kAllLanes) {
      PTXSIM_LANES_INDEPENDENT
      for (int lane = 0; lane < kWarpSize; ++lane) out[lane] = in[lane * kCount + i];
    } else {
      x.for_lanes([&](int lane) { out[lane] = in[lane * kCount + i]; });
    }
  }
  return Outcome::kNext;
}

struct VectorForm {
  unsigned total, elements;  // bytes of the scalar, elements of the vector
  Type element;
  Handler pack, unpack;
};
constexpr VectorForm kVectorForms[] = {
    {2, 2, Type::kB8, &pack<uint8_t, 2>, &unpack<uint8_t, 2>},
    {4, 4, Type::kB8, &pack<uint8_t, 4>, &unpack<uint8_t, 4>},
    {4, 2, Type::kB16, &pack<uint16_t, 2>, &unpack<uint16_t, 2>},
    {8, 4, Type::kB16, &pack<uint16_t, 4>, &unpack<uint16_t, 4>},
    {8, 2, Type::kB32, &pack<uint32_t, 2>, &unpack<uint32_t, 2>},
    {16, 4, Type::kB32, &pack<uint32_t, 4>, &unpack<uint32_t, 4>},
    {16, 2, Type::kB64, &pack<uint64_t, 2>, &unpack<uint64_t, 2>},
};

const VectorForm& vector_form(const Decode& d, unsigned total, size_t elements) {
  for (const VectorForm& form : kVectorForms)
    if (form.total == total && form.elements == elements) return form;
  d.fail(fmt::format(
      "a vector of {} elements in a type of {} bytes; PTX has 2x8, 4x8, 2x16, 4x16, 2x32, 4x32 and "
      "2x64 bits",
      elements, total));
}

void decode_vector(Decode& d, Type type) {
  const bool packs = d.operand(1).kind == Operand::Kind::kVector;
  const Operand& vector = d.operand(packs ? 1 : 0);
  const VectorForm& form = vector_form(d, bytes_of(type), vector.parts.size());
  for (size_t i = 0; i < vector.parts.size(); ++i)
    d.insn().slot[i + 1] = packs ? d.source(vector.parts[i], form.element)
                                 : d.destination(vector.parts[i], form.element);
  if (packs) {
    d.insn().slot[0] = d.destination(0, type);
    if (!d.insn().slot[0].present()) d.fail("mov needs a destination; '_' is not one");
  } else {
    d.insn().slot[0] = d.source(1, type);
  }
  d.insn().execute = packs ? form.pack : form.unpack;
}

void decode_mov_pred(Decode& d) {
  const Operand& from = d.operand(1);
  d.insn().slot[0] = d.destination(0, Type::kPred);
  if (from.kind == Operand::Kind::kSpecial && from.special == SpecialKind::kIsExplicitCluster) {
    d.insn().execute = &read_is_explicit_cluster;
    return;
  }
  d.insn().slot[1] = d.predicate(from);
  d.insn().variant = from.negated ? 1 : 0;
  d.insn().execute = &copy_predicate;
}

// Bytes of a clock; 0: not one.
unsigned clock_bytes(const Operand& operand, bool& high) {
  high = false;
  if (operand.kind != Operand::Kind::kSpecial) return 0;
  switch (operand.special) {
    case SpecialKind::kClockHi:
    case SpecialKind::kGlobaltimerHi:
      high = true;
      return 4;
    case SpecialKind::kClock:
    case SpecialKind::kGlobaltimerLo:
      return 4;
    case SpecialKind::kClock64:
    case SpecialKind::kGlobaltimer:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

void decode_mov(Decode& d) {
  d.expect_operands(2, 2);
  const Type type = d.modifiers().take_type();
  if (type == Type::kNone) d.fail("mov names no type");
  if (type == Type::kPred) return decode_mov_pred(d);
  const unsigned bytes = bytes_of(type);
  if (d.operand(0).kind == Operand::Kind::kVector || d.operand(1).kind == Operand::Kind::kVector)
    return decode_vector(d, type);
  bool high;
  if (const unsigned clock = clock_bytes(d.operand(1), high); clock != 0) {
    if (clock != bytes)
      d.fail(fmt::format("the special register has {} bytes; the type has {}", clock, bytes));
    d.insn().slot[0] = d.destination(0, type);
    d.insn().variant = high ? 1 : 0;
    d.insn().execute = bytes == 8 ? &read_clock<uint64_t> : &read_clock<uint32_t>;
  } else {
    d.insn().slot[1] = d.source(1, type);
    d.insn().slot[0] = d.destination(0, type);
    d.insn().execute = copy_handler(bytes);
  }
  if (!d.insn().slot[0].present()) d.fail("mov needs a destination; '_' is not one");
}

std::span<const Decoder> decoders_move() {
  static constexpr Form kCvtaForms[] = {
      {{"to", "global"}, traits::kQuery.with(ResultFrom::kOperand).with(Trait::kToGlobal)}};
  static constexpr Decoder kDecoders[] = {
      {"mov", decode_mov,
       traits::kComputing.with(Trait::kPassesOn)
           .with(ResultFrom::kOperand)
           .with(OperandTypes::kPassed)},
      {"selp", decode_selp,
       traits::kComputing.with(ResultFrom::kChoice).with(OperandTypes::kPassed)},
      {"slct", decode_slct, traits::kComputing},
      {"prmt", decode_prmt, traits::kComputing},
      {"cvta", decode_cvta, traits::kQuery.with(ResultFrom::kOperand), kCvtaForms},
      {"isspacep", decode_isspacep, traits::kQuery},
      {"mapa", decode_mapa, traits::kQuery},
      {"getctarank", decode_getctarank, traits::kQuery},
  };
  return kDecoders;
}

}  // namespace ptxsim
