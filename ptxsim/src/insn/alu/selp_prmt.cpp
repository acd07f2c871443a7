// selp, slct, prmt (PTX ISA 9.0, "Comparison and Selection Instructions", "prmt").
#include <bit>

#include "insn/alu/lanes.hpp"
#include "insn/alu/mov.hpp"

namespace ptxsim {
namespace {

// slot[3] is the predicate; Insn::variant: negated.
template <class T>
Outcome select_by_predicate(Execution& x, const Insn& insn) {
  const T* a = x.source<T>(insn.slot[1]);
  const T* b = x.source<T>(insn.slot[2]);
  const uint32_t which = x.predicate(insn.slot[3], insn.variant != 0);
  T* out = x.destination<T>(insn.slot[0]);
  if (x.mask == kAllLanes) {
    PTXSIM_LANES_INDEPENDENT
    for (int lane = 0; lane < kWarpSize; ++lane)
      out[lane] = ((which >> lane) & 1) != 0 ? a[lane] : b[lane];
  } else {
    x.for_lanes([&](int lane) { out[lane] = ((which >> lane) & 1) != 0 ? a[lane] : b[lane]; });
  }
  return Outcome::kNext;
}

template <class T>
T select_by_sign(T a, T b, int32_t c) {
  return c >= 0 ? a : b;
}
template <class T>
T select_by_float(T a, T b, float c) {
  return c >= 0 ? a : b;
}
// .ftz: a subnormal counts as a zero of its sign, and -0 >= 0.
template <class T>
T select_by_flushed(T a, T b, float c) {
  return (c >= 0 || (std::bit_cast<uint32_t>(c) & 0x7f800000u) == 0) ? a : b;
}

template <class T>
Handler slct_handler(bool is_float_condition, bool ftz) {
  if (!is_float_condition) return &each_lane<&select_by_sign<T>>;
  return ftz ? &each_lane<&select_by_flushed<T>> : &each_lane<&select_by_float<T>>;
}

// Byte `selector & 7` of {b, a}; bit 3 replicates its sign.
uint32_t pick_byte(uint64_t both, uint32_t selector) {
  const uint32_t byte = static_cast<uint32_t>(both >> (8 * (selector & 7))) & 0xffu;
  if ((selector & 8) == 0) return byte;
  return (byte & 0x80u) != 0 ? 0xffu : 0u;
}
uint32_t permute(uint32_t a, uint32_t b, uint32_t selectors) {
  const uint64_t both = (uint64_t{b} << 32) | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) result |= pick_byte(both, (selectors >> (4 * i)) & 0xfu) << (8 * i);
  return result;
}

// The modes .f4e .b4e .rc8 .ecl .ecr .rc16 pick by the two low bits of c; as selectors of the
// generic form, byte 3 in the highest digit.
constexpr uint32_t kSelectors[6][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
    {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
    {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232},
};
uint32_t permute_by_mode(uint32_t a, uint32_t b, uint32_t c, uint64_t mode) {
  return permute(a, b, kSelectors[mode][c & 3]);
}

constexpr std::initializer_list<Type> kSelectable = {Type::kB16, Type::kB32, Type::kB64, Type::kU16,
                                                     Type::kU32, Type::kU64, Type::kS16, Type::kS32,
                                                     Type::kS64, Type::kF32, Type::kF64};

}  // namespace

void decode_selp(Decode& d) {
  const Type type = take_type_of(d, kSelectable);
  d.expect_operands(4, 4);
  d.insn().slot[1] = d.source(1, type);
  d.insn().slot[2] = d.source(2, type);
  d.insn().slot[3] = d.predicate(3);
  d.insn().variant = d.is_negated(3) ? 1 : 0;
  d.insn().slot[0] = d.destination(0, type);
  if (!d.insn().slot[0].present()) d.fail("selp needs a destination; '_' is not one");
  switch (bytes_of(type)) {
    case 2:
      d.insn().execute = &select_by_predicate<uint16_t>;
      break;
    case 4:
      d.insn().execute = &select_by_predicate<uint32_t>;
      break;
    default:
      d.insn().execute = &select_by_predicate<uint64_t>;
      break;
  }
}

void decode_slct(Decode& d) {
  const bool ftz = d.modifiers().take("ftz");
  const Type type = take_type_of(d, kSelectable);
  const Type condition = take_type_of(d, {Type::kS32, Type::kF32});
  const bool by_float = condition == Type::kF32;
  if (ftz && !by_float) d.fail(".ftz is known for a condition of type .f32 alone");
  take_operands(d, type, {type, type, condition});
  switch (bytes_of(type)) {
    case 2:
      d.insn().execute = slct_handler<uint16_t>(by_float, ftz);
      break;
    case 4:
      d.insn().execute = slct_handler<uint32_t>(by_float, ftz);
      break;
    default:
      d.insn().execute = slct_handler<uint64_t>(by_float, ftz);
      break;
  }
}

void decode_prmt(Decode& d) {
  const int mode = d.modifiers().take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  take_type_of(d, {Type::kB32});
  take_operands(d, Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
  if (mode >= 0) d.insn().imm = static_cast<uint64_t>(mode);
  d.insn().execute = mode < 0 ? &each_lane<&permute> : &each_lane_imm<&permute_by_mode>;
}

}  // namespace ptxsim
