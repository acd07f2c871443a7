// cvt between integers and f16, bf16, f32, f64, one value at a time (PTX ISA 9.0, "cvt"). Registers
// may be wider than the types: the source's low bits count, the result is extended.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "insn/alu/cvt.hpp"
#include "insn/alu/float_values.hpp"
#include "insn/alu/lanes.hpp"
#include "number/sign.hpp"

namespace ptxsim {
namespace {

uint64_t low_bytes(uint64_t value, unsigned bytes) {
  return bytes >= 8 ? value : value & ((uint64_t{1} << (8 * bytes)) - 1);
}

// An integer of up to 64 bits, signed or not.
Int128 integer_value(Type type, uint64_t bits) {
  return is_signed(type) ? Int128{sign_extended(bits, 8 * bytes_of(type))}
                         : Int128{low_bytes(bits, bytes_of(type))};
}
Int128 least_of(Type type) {
  return is_signed(type) ? -(Int128{1} << (8 * bytes_of(type) - 1)) : Int128{0};
}
Int128 greatest_of(Type type) {
  return (Int128{1} << (8 * bytes_of(type) - (is_signed(type) ? 1 : 0))) - 1;
}

double float_value(Type type, uint64_t bits, bool ftz) {
  switch (type) {
    case Type::kF16:
      return f16_to_float(static_cast<uint16_t>(bits));
    case Type::kBf16:
      return bf16_to_float(static_cast<uint16_t>(bits));
    case Type::kF32: {
      const auto word = static_cast<uint32_t>(bits);
      return std::bit_cast<float>(ftz ? flush_f32(word) : word);
    }
    default:
      return std::bit_cast<double>(bits);
  }
}

double to_integral(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
    default:
      return std::nearbyint(value);
  }
}

// `value` is not NaN, or is: then 0, but with f64 or 64-bit integers the number with the highest
// bit alone.
uint64_t float_to_integer(const Conversion& how, double value) {
  if (value != value) {
    const bool zero = how.from != Type::kF64 && bytes_of(how.to) < 8;
    return zero ? 0 : uint64_t{1} << (8 * bytes_of(how.to) - 1);
  }
  value = to_integral(value, how.rounding);
  const Int128 least = least_of(how.to), greatest = greatest_of(how.to);
  if (value <= static_cast<double>(least)) return static_cast<uint64_t>(least);
  if (value >= static_cast<double>(greatest)) return static_cast<uint64_t>(greatest);
  return static_cast<uint64_t>(static_cast<Int128>(value));
}

// A floating-point result, NaN only with .sat: .sat, .relu, .ftz, then the code of the
// destination's format.
uint64_t float_result(const Conversion& how, double value) {
  if (how.sat) value = value > 0 ? std::min(value, 1.0) : 0.0;  // NaN and -0 become +0
  if (how.relu && !(value > 0)) value = 0.0;
  if (how.to == Type::kF64) return std::bit_cast<uint64_t>(value);
  if (how.ftz && how.to == Type::kF32 && is_flushed_f32(value, how.rounding))
    value = std::copysign(0.0, value);
  return encode(*format_of(how.to), value, how.rounding, how.satfinite);
}

// An integer as a double rounded to odd, so that rounding it again is one rounding of the integer.
double integer_to_odd(bool negative, uint64_t magnitude) {
  const double toward_zero = integer_to_double(false, magnitude, Rounding::kZero);
  const bool exact = static_cast<Uint128>(toward_zero) == magnitude;
  const double odd =
      std::bit_cast<double>(std::bit_cast<uint64_t>(toward_zero) | (exact ? 0u : 1u));
  return negative ? -odd : odd;
}

uint64_t integer_to_float_bits(const Conversion& how, Int128 value) {
  const bool negative = value < 0;
  const auto magnitude = static_cast<uint64_t>(negative ? -value : value);
  if (how.to == Type::kF64 && !how.sat)
    return std::bit_cast<uint64_t>(integer_to_double(negative, magnitude, how.rounding));
  return float_result(how, integer_to_odd(negative, magnitude));
}

// What a NaN becomes, where PTX leaves it open as an H200 has it: to and from f64 the sign and the
// payload's upper bits stay; f32 to f32 without modifiers is a move; else the canonical NaN.
struct NanFields {
  unsigned bits, fraction_bits;  // of the format
};
NanFields nan_fields(Type type) {
  switch (type) {
    case Type::kF16:
      return {16, 10};
    case Type::kBf16:
      return {16, 7};
    case Type::kF32:
      return {32, 23};
    default:
      return {64, 52};
  }
}
uint64_t convert_nan(const Conversion& how, uint64_t bits) {
  if (how.to == how.from && !how.ftz && !how.integral) return bits;
  if (how.to != Type::kF64 && how.from != Type::kF64)
    return how.to == Type::kF32 ? kNanF32 : uint64_t{kNanHalf};
  if (how.from == Type::kF32 && how.ftz) bits = kNanF32;
  const NanFields from = nan_fields(how.from), to = nan_fields(how.to);
  const uint64_t sign = (bits >> (from.bits - 1)) & 1;
  const uint64_t fraction = bits << (64 - from.fraction_bits) >> (64 - to.fraction_bits);
  const uint64_t quiet = uint64_t{1} << (to.fraction_bits - 1);
  const uint64_t exponent = (uint64_t{1} << (to.bits - 1)) - (uint64_t{1} << to.fraction_bits);
  return (sign << (to.bits - 1)) | exponent | quiet | fraction;
}

uint64_t convert(const Conversion& how, uint64_t bits) {
  if (!is_float(how.from)) {
    const Int128 value = integer_value(how.from, bits);
    if (is_float(how.to)) return integer_to_float_bits(how, value);
    if (!how.sat) return static_cast<uint64_t>(value);
    return static_cast<uint64_t>(std::clamp(value, least_of(how.to), greatest_of(how.to)));
  }
  // To f16 .ftz flushes nothing (an H100): what is subnormal as f32 still rounds up with .rp, and
  // down with .rm.
  double value = float_value(how.from, bits, how.ftz && how.to != Type::kF16);
  if (!is_float(how.to)) return float_to_integer(how, value);
  if (value != value && !how.sat) return convert_nan(how, bits);
  if (how.integral) value = to_integral(value, how.rounding);
  return float_result(how, value);
}

uint64_t load(const std::byte* lanes, unsigned width, int lane) {
  switch (width) {
    case 1:
      return reinterpret_cast<const uint8_t*>(lanes)[lane];
    case 2:
      return reinterpret_cast<const uint16_t*>(lanes)[lane];
    case 4:
      return reinterpret_cast<const uint32_t*>(lanes)[lane];
    default:
      return reinterpret_cast<const uint64_t*>(lanes)[lane];
  }
}
void store(std::byte* lanes, unsigned width, int lane, uint64_t value) {
  switch (width) {
    case 1:
      reinterpret_cast<uint8_t*>(lanes)[lane] = static_cast<uint8_t>(value);
      break;
    case 2:
      reinterpret_cast<uint16_t*>(lanes)[lane] = static_cast<uint16_t>(value);
      break;
    case 4:
      reinterpret_cast<uint32_t*>(lanes)[lane] = static_cast<uint32_t>(value);
      break;
    default:
      reinterpret_cast<uint64_t*>(lanes)[lane] = value;
      break;
  }
}

Outcome convert_lanes(Execution& x, const Insn& insn) {
  const auto& how = *static_cast<const Conversion*>(insn.detail);
  const std::byte* in = x.source<std::byte>(insn.slot[1]);
  std::byte* out = x.destination<std::byte>(insn.slot[0]);
  const unsigned bytes = bytes_of(how.to);
  const bool extend_sign = is_signed(how.to);
  x.for_lanes([&](int lane) {
    const uint64_t result =
        convert(how, low_bytes(load(in, how.from_width, lane), bytes_of(how.from)));
    store(out, how.to_width, lane,
          extend_sign ? static_cast<uint64_t>(sign_extended(result, 8 * bytes))
                      : low_bytes(result, bytes));
  });
  return Outcome::kNext;
}

// Straight-line forms of what kernels use most. Narrow: the smaller of both types, whose sign
// counts.
template <class From, class Narrow, class To>
To resize(From a) {
  return static_cast<To>(static_cast<Narrow>(a));
}
template <class From, class Narrow>
Handler resize_to(unsigned to_width) {
  switch (to_width) {
    case 1:
      if constexpr (sizeof(Narrow) <= 1) return &each_lane<&resize<From, Narrow, uint8_t>>;
      break;
    case 2:
      if constexpr (sizeof(Narrow) <= 2) return &each_lane<&resize<From, Narrow, uint16_t>>;
      break;
    case 4:
      if constexpr (sizeof(Narrow) <= 4) return &each_lane<&resize<From, Narrow, uint32_t>>;
      break;
    default:
      return &each_lane<&resize<From, Narrow, uint64_t>>;
  }
  return nullptr;
}
template <class Narrow>
Handler resize_from(unsigned from_width, unsigned to_width) {
  switch (from_width) {
    case 1:
      if constexpr (sizeof(Narrow) <= 1) return resize_to<uint8_t, Narrow>(to_width);
      break;
    case 2:
      if constexpr (sizeof(Narrow) <= 2) return resize_to<uint16_t, Narrow>(to_width);
      break;
    case 4:
      if constexpr (sizeof(Narrow) <= 4) return resize_to<uint32_t, Narrow>(to_width);
      break;
    default:
      return resize_to<uint64_t, Narrow>(to_width);
  }
  return nullptr;
}
Handler resize_handler(const Conversion& how) {
  const bool widens = bytes_of(how.to) > bytes_of(how.from);
  // A signed value made unsigned and then extended into a wider register takes two steps.
  if (widens && how.to_width > bytes_of(how.to) && is_signed(how.from) && !is_signed(how.to))
    return nullptr;
  switch (widens ? how.from : how.to) {
    case Type::kU8:
      return resize_from<uint8_t>(how.from_width, how.to_width);
    case Type::kS8:
      return resize_from<int8_t>(how.from_width, how.to_width);
    case Type::kU16:
      return resize_from<uint16_t>(how.from_width, how.to_width);
    case Type::kS16:
      return resize_from<int16_t>(how.from_width, how.to_width);
    case Type::kU32:
      return resize_from<uint32_t>(how.from_width, how.to_width);
    case Type::kS32:
      return resize_from<int32_t>(how.from_width, how.to_width);
    case Type::kU64:
      return resize_from<uint64_t>(how.from_width, how.to_width);
    default:
      return resize_from<int64_t>(how.from_width, how.to_width);
  }
}

template <class T>
uint32_t to_f32(T a) {
  return std::bit_cast<uint32_t>(static_cast<float>(a));
}
uint32_t f16_to_f32(uint16_t a) { return f32_out<false>(f16_to_float(a)); }
uint16_t f32_to_f16(float a) { return float_to_f16(a); }
uint16_t f32_to_bf16(float a) { return float_to_bf16(a); }
// The exponent of a NaN and its payload move as they are.
uint32_t bf16_to_f32(uint16_t a) { return static_cast<uint32_t>(a) << 16; }

Handler direct_handler(const Conversion& how) {
  if (how.to_width != bytes_of(how.to) || how.from_width != bytes_of(how.from)) return nullptr;
  if (how.sat || how.ftz || how.relu || how.satfinite || how.integral) return nullptr;
  if (how.from == Type::kF16 && how.to == Type::kF32) return &each_lane<&f16_to_f32>;
  if (how.from == Type::kBf16 && how.to == Type::kF32) return &each_lane<&bf16_to_f32>;
  if (how.rounding != Rounding::kNearestEven) return nullptr;
  if (how.to == Type::kF32 && how.from == Type::kS32) return &each_lane<&to_f32<int32_t>>;
  if (how.to == Type::kF32 && how.from == Type::kU32) return &each_lane<&to_f32<uint32_t>>;
  if (how.from == Type::kF32 && how.to == Type::kF16) return &each_lane<&f32_to_f16>;
  if (how.from == Type::kF32 && how.to == Type::kBf16) return &each_lane<&f32_to_bf16>;
  return nullptr;
}

bool is_scalar(Type type) {
  switch (type) {
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kS8:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64:
    case Type::kF16:
    case Type::kBf16:
    case Type::kF32:
    case Type::kF64:
      return true;
    default:
      return false;
  }
}

void check_modifiers(const Decode& d, const Conversion& how) {
  const bool from_float = is_float(how.from), to_float = is_float(how.to);
  if (from_float && !to_float && !how.integral)
    d.fail("float to integer needs .rni, .rzi, .rmi or .rpi");
  if (!from_float && !to_float && how.has_rounding) d.fail("integer to integer has no rounding");
  if (!from_float && to_float && (how.integral || !how.has_rounding))
    d.fail("integer to float needs .rn, .rz, .rm or .rp");
  if (from_float && to_float && bytes_of(how.to) < bytes_of(how.from) && !how.has_rounding)
    d.fail("a conversion to a smaller float needs .rn, .rz, .rm or .rp");
  if (from_float && to_float && how.integral && how.to != how.from)
    d.fail("integer roundings of floats keep the type");
  if (how.ftz && how.to != Type::kF32 && how.from != Type::kF32)
    d.fail(".ftz needs .f32 as one of the types");
  const bool to_half = how.to == Type::kF16 || how.to == Type::kBf16;
  if ((how.relu || how.satfinite) && !(to_half && how.from == Type::kF32))
    d.fail(".relu and .satfinite are known from .f32 to 16-bit and smaller types alone");
  if (how.sat && how.to == Type::kBf16) d.fail(".sat is not known for .bf16");
}

}  // namespace

void decode_cvt_scalar(Decode& d, const Conversion& given) {
  for (const Type type : {given.to, given.from})
    if (!is_scalar(type))
      d.fail(fmt::format("type .{} is not known for cvt in this form", name_of(type)));
  check_modifiers(d, given);
  d.expect_operands(2, 2);
  auto* how = d.make_detail<Conversion>(given);
  d.insn().slot[1] = d.source(d.operand(1), given.from, given.from != Type::kBf16);
  d.insn().slot[0] = d.destination(d.operand(0), given.to, given.to != Type::kBf16);
  if (!d.insn().slot[0].present()) d.fail("cvt needs a destination; '_' is not one");
  how->from_width = std::max(d.width_of(d.operand(1)), bytes_of(given.from));
  how->to_width = d.width_of(d.operand(0));
  const bool resizes = !is_float(given.from) && !is_float(given.to) && !given.sat;
  Handler handler = resizes ? resize_handler(*how) : direct_handler(*how);
  d.insn().execute = handler != nullptr ? handler : &convert_lanes;
}

}  // namespace ptxsim
