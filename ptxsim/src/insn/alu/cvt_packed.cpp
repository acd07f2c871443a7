// cvt of two values at a time, to and from the narrow formats, to tf32, and cvt.pack. With two .f32
// sources, a goes to the upper element and b to the lower one (PTX ISA 9.0, "cvt").
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "insn/alu/cvt.hpp"
#include "insn/alu/float_values.hpp"
#include "insn/alu/lanes.hpp"

namespace ptxsim {
namespace {

// tf32 of a NaN as an H200 has it: .rna only clears the low bits, and .satfinite takes the number
// before that one, as it does of an infinity; other roundings give the canonical NaN's upper bits.
uint32_t tf32_of_nan(const Conversion& how, uint32_t nan) {
  constexpr uint32_t kLowBits = 0x1fff;
  if (how.rounding != Rounding::kNearestAway) return kNanF32 & ~kLowBits;
  return (nan & ~kLowBits) - (how.satfinite ? kLowBits + 1 : 0);
}

// One element; .relu makes what is negative +0.
uint32_t convert_element(const Conversion& how, Format to, double value) {
  const uint32_t code = encode(to, value, how.rounding, how.satfinite);
  const bool negative = value < 0 || (value == 0 && std::signbit(value));
  return how.relu && negative ? 0 : code;
}

// Bits from one element to the next: 6-bit formats lie in bytes.
unsigned pitch_of(Format format) {
  return format == Format::kE2m1 ? 4 : (bits_of(format) + 7) / 8 * 8;
}

void store(std::byte* lanes, unsigned width, int lane, uint32_t value) {
  switch (width) {
    case 1:
      reinterpret_cast<uint8_t*>(lanes)[lane] = static_cast<uint8_t>(value);
      break;
    case 2:
      reinterpret_cast<uint16_t*>(lanes)[lane] = static_cast<uint16_t>(value);
      break;
    case 4:
      reinterpret_cast<uint32_t*>(lanes)[lane] = value;
      break;
    default:
      reinterpret_cast<uint64_t*>(lanes)[lane] = value;
      break;
  }
}
uint32_t load(const std::byte* lanes, unsigned width, int lane) {
  switch (width) {
    case 1:
      return reinterpret_cast<const uint8_t*>(lanes)[lane];
    case 2:
      return reinterpret_cast<const uint16_t*>(lanes)[lane];
    case 4:
      return reinterpret_cast<const uint32_t*>(lanes)[lane];
    default:
      return static_cast<uint32_t>(reinterpret_cast<const uint64_t*>(lanes)[lane]);
  }
}

// slot[1] upper, slot[2] lower; without slot[2] one element (tf32).
Outcome from_floats(Execution& x, const Insn& insn) {
  const auto& how = *static_cast<const Conversion*>(insn.detail);
  const Format to = *format_of(how.to);
  const bool two = insn.slot[2].present();
  const float* a = x.source<float>(insn.slot[1]);
  const float* b = two ? x.source<float>(insn.slot[2]) : nullptr;
  std::byte* out = x.destination<std::byte>(insn.slot[0]);
  x.for_lanes([&](int lane) {
    uint32_t value = to == Format::kTf32 && a[lane] != a[lane]
                         ? tf32_of_nan(how, std::bit_cast<uint32_t>(a[lane]))
                         : convert_element(how, to, a[lane]);
    if (two) value = (value << pitch_of(to)) | convert_element(how, to, b[lane]);
    store(out, how.to_width, lane, value);
  });
  return Outcome::kNext;
}
Outcome between_pairs(Execution& x, const Insn& insn) {
  const auto& how = *static_cast<const Conversion*>(insn.detail);
  const Format to = *format_of(how.to), from = *format_of(how.from);
  const std::byte* in = x.source<std::byte>(insn.slot[1]);
  std::byte* out = x.destination<std::byte>(insn.slot[0]);
  x.for_lanes([&](int lane) {
    const uint32_t both = load(in, how.from_width, lane);
    const uint32_t upper = convert_element(how, to, decode_to_float(from, both >> pitch_of(from)));
    const uint32_t lower = convert_element(how, to, decode_to_float(from, both));
    store(out, how.to_width, lane, (upper << pitch_of(to)) | lower);
  });
  return Outcome::kNext;
}

// The forms that kernels use most.
uint32_t to_f16x2(float a, float b) {
  return (static_cast<uint32_t>(float_to_f16(a)) << 16) | float_to_f16(b);
}
uint32_t to_bf16x2(float a, float b) {
  return (static_cast<uint32_t>(float_to_bf16(a)) << 16) | float_to_bf16(b);
}

bool is_narrow(Type type) {  // 8 bits and fewer, with a sign
  return type == Type::kE4m3x2 || type == Type::kE5m2x2 || type == Type::kE2m1x2 ||
         type == Type::kE2m3x2 || type == Type::kE3m2x2;
}

bool is_known_pair(Type to, Type from) {
  if (to == Type::kF16x2) return from == Type::kF32 || is_narrow(from);
  // From narrow types since PTX ISA 9.2, as Triton 3.9 writes it.
  if (to == Type::kBf16x2) return from == Type::kF32 || from == Type::kUe8m0x2 || is_narrow(from);
  if (to == Type::kTf32) return from == Type::kF32;
  if (to == Type::kUe8m0x2) return from == Type::kF32 || from == Type::kBf16x2;
  return is_narrow(to) && (from == Type::kF32 || from == Type::kF16x2 || from == Type::kBf16x2);
}

void check_modifiers(const Decode& d, const Conversion& how) {
  if (how.sat || how.ftz || how.integral)
    d.fail(".sat, .ftz and integer roundings are not known for these types");
  if (!how.has_rounding) d.fail("a rounding must be given for these types");
  const bool to_scale = how.to == Type::kUe8m0x2, to_tf32 = how.to == Type::kTf32;
  const Rounding rounding = how.rounding;
  const bool nearest = rounding == Rounding::kNearestEven, zero = rounding == Rounding::kZero;
  const bool known = to_scale  ? zero || rounding == Rounding::kUp
                     : to_tf32 ? nearest || zero || rounding == Rounding::kNearestAway
                     : how.from == Type::kF32 && !is_narrow(how.to) ? nearest || zero
                                                                    : nearest;
  if (!known) d.fail("this rounding is not known for these types");
  if (is_narrow(how.to) && !how.satfinite) d.fail(".satfinite must be given for this destination");
  if (how.satfinite && how.from != Type::kF32 && !is_narrow(how.to) && !to_scale)
    d.fail(".satfinite is not known for these types");
  if (how.relu &&
      (how.from == Type::kUe8m0x2 || (to_tf32 && rounding == Rounding::kNearestAway) || to_scale))
    d.fail(".relu is not known for these types");
}

struct PackedType {
  std::string_view name;
  int bits;
  bool is_signed;
};
constexpr PackedType kPackedTypes[] = {{"u16", 16, false}, {"s16", 16, true}, {"u8", 8, false},
                                       {"s8", 8, true},    {"u4", 4, false},  {"s4", 4, true},
                                       {"u2", 2, false},   {"s2", 2, true}};

// Insn::imm: index into kPackedTypes.
uint32_t clamp_to(const PackedType& type, int32_t value) {
  const int32_t least = type.is_signed ? -(1 << (type.bits - 1)) : 0;
  const int32_t greatest = (1 << (type.is_signed ? type.bits - 1 : type.bits)) - 1;
  return static_cast<uint32_t>(std::clamp(value, least, greatest)) & ((1u << type.bits) - 1);
}
uint32_t pack_two(int32_t a, int32_t b, uint64_t index) {
  const PackedType& type = kPackedTypes[index];
  return (clamp_to(type, a) << type.bits) | clamp_to(type, b);
}
uint32_t pack_before(int32_t a, int32_t b, uint32_t c, uint64_t index) {
  return pack_two(a, b, index) | (c << (2 * kPackedTypes[index].bits));
}

}  // namespace

void decode_cvt_packed(Decode& d, const Conversion& given) {
  if (!is_known_pair(given.to, given.from))
    d.fail(fmt::format("conversion from .{} to .{} is not known", name_of(given.from),
                       name_of(given.to)));
  check_modifiers(d, given);
  auto* how = d.make_detail<Conversion>(given);
  const bool pair_of_floats = given.from == Type::kF32 && given.to != Type::kTf32;
  d.expect_operands(pair_of_floats ? 3 : 2, pair_of_floats ? 3 : 2);
  d.insn().slot[1] = d.source(d.operand(1), given.from, given.from != Type::kBf16x2);
  how->from_width = std::max(d.width_of(d.operand(1)), bytes_of(given.from));
  if (pair_of_floats) d.insn().slot[2] = d.source(2, Type::kF32);
  const bool exact_width = given.to == Type::kBf16x2 || given.to == Type::kTf32;
  d.insn().slot[0] = d.destination(d.operand(0), given.to, !exact_width);
  if (!d.insn().slot[0].present()) d.fail("cvt needs a destination; '_' is not one");
  how->to_width = d.width_of(d.operand(0));
  const bool plain = given.rounding == Rounding::kNearestEven && !given.relu && !given.satfinite &&
                     how->to_width == 4;
  d.insn().execute = given.from != Type::kF32             ? &between_pairs
                     : plain && given.to == Type::kF16x2  ? &each_lane<&to_f16x2>
                     : plain && given.to == Type::kBf16x2 ? &each_lane<&to_bf16x2>
                                                          : &from_floats;
}

void decode_cvt_pack(Decode& d) {
  if (!d.modifiers().take("sat")) d.fail("cvt.pack needs .sat");
  const int index = d.modifiers().take_one_of({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
  if (index < 0) d.fail("cvt.pack names no type to convert to");
  take_type_of(d, {Type::kS32});
  d.insn().imm = static_cast<uint64_t>(index);
  if (kPackedTypes[index].bits == 16) {
    take_operands(d, Type::kB32, {Type::kS32, Type::kS32});
    d.insn().execute = &each_lane_imm<&pack_two>;
    return;
  }
  take_type_of(d, {Type::kB32});
  take_operands(d, Type::kB32, {Type::kS32, Type::kS32, Type::kB32});
  d.insn().execute = &each_lane_imm<&pack_before>;
}

}  // namespace ptxsim
