// mul, mad, mul24, mad24, div, rem, dp4a, dp2a (PTX ISA 9.0, "Integer Arithmetic Instructions").
#include <algorithm>
#include <limits>
#include <type_traits>

#include "insn/alu/arithmetic.hpp"
#include "insn/alu/lanes.hpp"

namespace ptxsim {
namespace {

enum class Part : uint8_t { kLow, kHigh, kWide };

template <class T>
struct DoubleWidth;
template <>
struct DoubleWidth<uint16_t> {
  using Type = uint32_t;
};
template <>
struct DoubleWidth<int16_t> {
  using Type = int32_t;
};
template <>
struct DoubleWidth<uint32_t> {
  using Type = uint64_t;
};
template <>
struct DoubleWidth<int32_t> {
  using Type = int64_t;
};
template <>
struct DoubleWidth<uint64_t> {
  using Type = Uint128;
};
template <>
struct DoubleWidth<int64_t> {
  using Type = Int128;
};
template <class T>
using Double = typename DoubleWidth<T>::Type;

template <class T>
Double<T> product(T a, T b) {
  return static_cast<Double<T>>(a) * static_cast<Double<T>>(b);
}
template <class T>
T mul_low(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)));
}
template <class T>
T mul_high(T a, T b) {
  return static_cast<T>(product(a, b) >> (8 * sizeof(T)));
}
template <class T>
T add_modulo(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
}
template <class T>
T mad_low(T a, T b, T c) {
  return add_modulo(mul_low(a, b), c);
}
template <class T>
T mad_high(T a, T b, T c) {
  return add_modulo(mul_high(a, b), c);
}
template <class T>
Double<T> mad_wide(T a, T b, Double<T> c) {
  return add_modulo(product(a, b), c);
}

int32_t add_clamped(int32_t a, int32_t b) {
  return static_cast<int32_t>(std::clamp<int64_t>(
      int64_t{a} + b, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}
int32_t mad_high_saturating(int32_t a, int32_t b, int32_t c) {
  return add_clamped(mul_high(a, b), c);
}

template <class T>
Handler mul_handler(Part part) {
  if (part == Part::kLow) return &each_lane<&mul_low<T>>;
  if (part == Part::kHigh) return &each_lane<&mul_high<T>>;
  if constexpr (sizeof(T) < 8) return &each_lane<&product<T>>;
  return nullptr;
}
template <class T>
Handler mad_handler(Part part) {
  if (part == Part::kLow) return &each_lane<&mad_low<T>>;
  if (part == Part::kHigh) return &each_lane<&mad_high<T>>;
  if constexpr (sizeof(T) < 8) return &each_lane<&mad_wide<T>>;
  return nullptr;
}

Part take_part(Decode& d) {
  const int part = d.modifiers().take_one_of({"lo", "hi", "wide"});
  if (part < 0) d.fail("one of .lo, .hi and .wide must be given for integers");
  return static_cast<Part>(part);
}
Type doubled(Decode& d, Type type) {
  switch (type) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    case Type::kS32:
      return Type::kS64;
    default:
      d.fail(".wide is known for 16 and 32 bits alone");
  }
}
Type take_integer_type(Decode& d) {
  return take_type_of(d, {Type::kU16, Type::kS16, Type::kU32, Type::kS32, Type::kU64, Type::kS64});
}

template <template <class> class Choose>
Handler by_integer_type(Type type, Part part) {
  switch (type) {
    case Type::kU16:
      return Choose<uint16_t>::handler(part);
    case Type::kS16:
      return Choose<int16_t>::handler(part);
    case Type::kU32:
      return Choose<uint32_t>::handler(part);
    case Type::kS32:
      return Choose<int32_t>::handler(part);
    case Type::kU64:
      return Choose<uint64_t>::handler(part);
    default:
      return Choose<int64_t>::handler(part);
  }
}
template <class T>
struct ChooseMul {
  static Handler handler(Part part) { return mul_handler<T>(part); }
};
template <class T>
struct ChooseMad {
  static Handler handler(Part part) { return mad_handler<T>(part); }
};

// Division by zero has an unspecified result (PTX ISA, "div", "rem"): all ones, as an H200 has it.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  }
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}
template <class T>
struct ChooseDiv {
  static Handler handler(Part) { return &each_lane<&quotient<T>>; }
};
template <class T>
struct ChooseRem {
  static Handler handler(Part) { return &each_lane<&remainder<T>>; }
};

// 24-bit operands: the low 24 bits of a register, sign-extended for .s32; bits 47..16 or 31..0 of
// the product.
template <bool kSigned>
int64_t product24(uint32_t a, uint32_t b) {
  if constexpr (kSigned)
    return int64_t{static_cast<int32_t>(a << 8) >> 8} * (static_cast<int32_t>(b << 8) >> 8);
  return static_cast<int64_t>(uint64_t{a & 0xffffffu} * (b & 0xffffffu));
}
template <bool kSigned, bool kHigh>
uint32_t mul24(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(product24<kSigned>(a, b) >> (kHigh ? 16 : 0));
}
template <bool kSigned, bool kHigh>
uint32_t mad24(uint32_t a, uint32_t b, uint32_t c) {
  return mul24<kSigned, kHigh>(a, b) + c;
}
uint32_t mad24_high_saturating(uint32_t a, uint32_t b, uint32_t c) {
  return static_cast<uint32_t>(
      add_clamped(static_cast<int32_t>(mul24<true, true>(a, b)), static_cast<int32_t>(c)));
}

template <bool kSigned>
int32_t byte_of(uint32_t word, int index) {
  const uint32_t byte = (word >> (8 * index)) & 0xffu;
  return kSigned ? static_cast<int8_t>(byte) : static_cast<int32_t>(byte);
}
template <bool kSigned>
int32_t half_of(uint32_t word, int index) {
  const uint32_t half = (word >> (16 * index)) & 0xffffu;
  return kSigned ? static_cast<int16_t>(half) : static_cast<int32_t>(half);
}
template <bool kSignedA, bool kSignedB>
uint32_t dot4(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 4; ++i)
    c += static_cast<uint32_t>(byte_of<kSignedA>(a, i) * byte_of<kSignedB>(b, i));
  return c;
}
template <bool kSignedA, bool kSignedB, int kFirst>
uint32_t dot2(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 2; ++i)
    c += static_cast<uint32_t>(half_of<kSignedA>(a, i) * byte_of<kSignedB>(b, kFirst + i));
  return c;
}
template <bool kSignedA, bool kSignedB>
Handler dot_handler(bool four, bool high) {
  if (four) return &each_lane<&dot4<kSignedA, kSignedB>>;
  return high ? &each_lane<&dot2<kSignedA, kSignedB, 2>> : &each_lane<&dot2<kSignedA, kSignedB, 0>>;
}

}  // namespace

void decode_mul(Decode& d) {
  if (names_float_type(d)) return decode_float_mul(d);
  const Part part = take_part(d);
  const Type type = take_integer_type(d);
  take_operands(d, part == Part::kWide ? doubled(d, type) : type, {type, type});
  d.insn().execute = by_integer_type<ChooseMul>(type, part);
}

void decode_mad(Decode& d) {
  if (d.modifiers().has("cc")) return decode_carry(d);
  if (names_float_type(d)) return decode_float_fma(d);
  const Part part = take_part(d);
  const bool sat = d.modifiers().take("sat");
  const Type type = take_integer_type(d);
  if (sat && (type != Type::kS32 || part != Part::kHigh))
    d.fail(".sat is known for mad.hi.s32 alone");
  const Type result = part == Part::kWide ? doubled(d, type) : type;
  take_operands(d, result, {type, type, result});
  d.insn().execute =
      sat ? &each_lane<&mad_high_saturating> : by_integer_type<ChooseMad>(type, part);
}

void decode_mul24(Decode& d) {
  const bool is_mad = d.statement().root == "mad24";
  const int high = d.modifiers().take_one_of({"lo", "hi"});
  if (high < 0) d.fail("one of .lo and .hi must be given");
  const bool sat = d.modifiers().take("sat");
  const Type type = take_type_of(d, {Type::kU32, Type::kS32});
  const bool is_signed_type = type == Type::kS32;
  if (sat && !(is_mad && high == 1 && is_signed_type))
    d.fail(".sat is known for mad24.hi.s32 alone");
  static constexpr Handler kMul[2][2] = {
      {&each_lane<&mul24<false, false>>, &each_lane<&mul24<false, true>>},
      {&each_lane<&mul24<true, false>>, &each_lane<&mul24<true, true>>}};
  static constexpr Handler kMad[2][2] = {
      {&each_lane<&mad24<false, false>>, &each_lane<&mad24<false, true>>},
      {&each_lane<&mad24<true, false>>, &each_lane<&mad24<true, true>>}};
  if (is_mad) {
    take_operands(d, type, {type, type, type});
    d.insn().execute = sat ? &each_lane<&mad24_high_saturating> : kMad[is_signed_type][high];
  } else {
    take_operands(d, type, {type, type});
    d.insn().execute = kMul[is_signed_type][high];
  }
}

void decode_div_rem(Decode& d) {
  if (names_float_type(d)) return decode_float_div(d);
  const Type type = take_integer_type(d);
  take_operands(d, type, {type, type});
  d.insn().execute = d.statement().root == "div" ? by_integer_type<ChooseDiv>(type, Part::kLow)
                                                 : by_integer_type<ChooseRem>(type, Part::kLow);
}

void decode_dot_product(Decode& d) {
  const bool four = d.statement().root == "dp4a";
  const int high = four ? 0 : d.modifiers().take_one_of({"lo", "hi"});
  if (high < 0) d.fail("one of .lo and .hi must be given");
  const Type a = take_type_of(d, {Type::kU32, Type::kS32});
  const Type b = take_type_of(d, {Type::kU32, Type::kS32});
  take_operands(d, Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
  if (a == Type::kS32) {
    d.insn().execute = b == Type::kS32 ? dot_handler<true, true>(four, high == 1)
                                       : dot_handler<true, false>(four, high == 1);
  } else {
    d.insn().execute = b == Type::kS32 ? dot_handler<false, true>(four, high == 1)
                                       : dot_handler<false, false>(four, high == 1);
  }
}

}  // namespace ptxsim
