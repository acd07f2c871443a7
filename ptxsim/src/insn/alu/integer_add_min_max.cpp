// add, sub, abs, neg, min, max, sad of integers, also of two 16-bit halves (PTX ISA 9.0, "Integer
// Arithmetic Instructions"). Arithmetic is modulo 2^n: done on unsigned types.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "insn/alu/arithmetic.hpp"
#include "insn/alu/lanes.hpp"

namespace ptxsim {
namespace {

template <class T>
T min_of(T a, T b) {
  return a < b ? a : b;
}
template <class T>
T max_of(T a, T b) {
  return a > b ? a : b;
}
template <class T>
T relu_of(T a) {
  return a < 0 ? T{0} : a;
}
template <class T>
T negate(T a) {
  return static_cast<T>(0 - a);
}
template <class T>
T absolute(T a) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(a < 0 ? static_cast<U>(0 - static_cast<U>(a)) : static_cast<U>(a));
}
// |a - b| + c; the difference is that of the mathematical values.
template <class T>
T sum_of_difference(T a, T b, T c) {
  using U = std::make_unsigned_t<T>;
  const U difference = a < b ? static_cast<U>(static_cast<U>(b) - static_cast<U>(a))
                             : static_cast<U>(static_cast<U>(a) - static_cast<U>(b));
  return static_cast<T>(static_cast<U>(difference + static_cast<U>(c)));
}

int32_t saturate(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                                                  std::numeric_limits<int32_t>::max()));
}
int32_t add_saturating(int32_t a, int32_t b) { return saturate(int64_t{a} + b); }
int32_t sub_saturating(int32_t a, int32_t b) { return saturate(int64_t{a} - b); }

// Both halves of a word.
template <class T, T (*kFunction)(T, T)>
uint32_t halves(uint32_t a, uint32_t b) {
  const T low = kFunction(static_cast<T>(a), static_cast<T>(b));
  const T high = kFunction(static_cast<T>(a >> 16), static_cast<T>(b >> 16));
  return static_cast<uint16_t>(low) | (static_cast<uint32_t>(static_cast<uint16_t>(high)) << 16);
}
template <class T, T (*kFunction)(T, T)>
T then_relu(T a, T b) {
  return relu_of<T>(kFunction(a, b));
}

template <bool kAdd, class T>
T add_or_sub(T a, T b) {
  return static_cast<T>(kAdd ? a + b : a - b);
}
template <bool kAdd>
Handler add_sub_handler(Type type) {
  switch (type) {
    case Type::kU16:
    case Type::kS16:
      return &each_lane<&add_or_sub<kAdd, uint16_t>>;
    case Type::kU32:
    case Type::kS32:
      return &each_lane<&add_or_sub<kAdd, uint32_t>>;
    case Type::kU64:
    case Type::kS64:
      return &each_lane<&add_or_sub<kAdd, uint64_t>>;
    default:
      return &each_lane<&halves<uint16_t, &add_or_sub<kAdd, uint16_t>>>;
  }
}

template <bool kMin, class T>
T select_of(T a, T b) {
  return kMin ? min_of<T>(a, b) : max_of<T>(a, b);
}

template <bool kMin>
Handler min_max_handler(Type type, bool relu) {
  switch (type) {
    case Type::kU16:
      return &each_lane<&select_of<kMin, uint16_t>>;
    case Type::kS16:
      return &each_lane<&select_of<kMin, int16_t>>;
    case Type::kU32:
      return &each_lane<&select_of<kMin, uint32_t>>;
    case Type::kS32:
      return relu ? &each_lane<&then_relu<int32_t, &select_of<kMin, int32_t>>>
                  : &each_lane<&select_of<kMin, int32_t>>;
    case Type::kU64:
      return &each_lane<&select_of<kMin, uint64_t>>;
    case Type::kS64:
      return &each_lane<&select_of<kMin, int64_t>>;
    case Type::kU16x2:
      return &each_lane<&halves<uint16_t, &select_of<kMin, uint16_t>>>;
    default:
      return relu ? &each_lane<&halves<int16_t, &then_relu<int16_t, &select_of<kMin, int16_t>>>>
                  : &each_lane<&halves<int16_t, &select_of<kMin, int16_t>>>;
  }
}

}  // namespace

void decode_add_sub(Decode& d) {
  if (d.modifiers().has("cc")) return decode_carry(d);
  if (names_float_type(d)) return decode_float_add_sub(d);
  const bool is_add = d.statement().root == "add";
  const bool sat = d.modifiers().take("sat");
  const Type type = take_type_of(d, {Type::kU16, Type::kS16, Type::kU32, Type::kS32, Type::kU64,
                                     Type::kS64, Type::kU16x2, Type::kS16x2});
  if (sat && type != Type::kS32) d.fail(".sat is known for .s32 alone");
  take_operands(d, type, {type, type});
  if (sat) {
    d.insn().execute = is_add ? &each_lane<&add_saturating> : &each_lane<&sub_saturating>;
  } else {
    d.insn().execute = is_add ? add_sub_handler<true>(type) : add_sub_handler<false>(type);
  }
}

void decode_abs_neg(Decode& d) {
  if (names_float_type(d)) return decode_float_abs_neg(d);
  const bool is_abs = d.statement().root == "abs";
  const Type type = take_type_of(d, {Type::kS16, Type::kS32, Type::kS64});
  take_operands(d, type, {type});
  switch (type) {
    case Type::kS16:
      d.insn().execute = is_abs ? &each_lane<&absolute<int16_t>> : &each_lane<&negate<uint16_t>>;
      break;
    case Type::kS32:
      d.insn().execute = is_abs ? &each_lane<&absolute<int32_t>> : &each_lane<&negate<uint32_t>>;
      break;
    default:
      d.insn().execute = is_abs ? &each_lane<&absolute<int64_t>> : &each_lane<&negate<uint64_t>>;
      break;
  }
}

void decode_min_max(Decode& d) {
  if (names_float_type(d)) return decode_float_min_max(d);
  const bool relu = d.modifiers().take("relu");
  const Type type = take_type_of(d, {Type::kU16, Type::kS16, Type::kU32, Type::kS32, Type::kU64,
                                     Type::kS64, Type::kU16x2, Type::kS16x2});
  if (relu && type != Type::kS32 && type != Type::kS16x2)
    d.fail(".relu is known for .s32 and .s16x2 alone");
  take_operands(d, type, {type, type});
  d.insn().execute = d.statement().root == "min" ? min_max_handler<true>(type, relu)
                                                 : min_max_handler<false>(type, relu);
}

void decode_sad(Decode& d) {
  const Type type =
      take_type_of(d, {Type::kU16, Type::kS16, Type::kU32, Type::kS32, Type::kU64, Type::kS64});
  take_operands(d, type, {type, type, type});
  switch (type) {
    case Type::kU16:
      d.insn().execute = &each_lane<&sum_of_difference<uint16_t>>;
      break;
    case Type::kS16:
      d.insn().execute = &each_lane<&sum_of_difference<int16_t>>;
      break;
    case Type::kU32:
      d.insn().execute = &each_lane<&sum_of_difference<uint32_t>>;
      break;
    case Type::kS32:
      d.insn().execute = &each_lane<&sum_of_difference<int32_t>>;
      break;
    case Type::kU64:
      d.insn().execute = &each_lane<&sum_of_difference<uint64_t>>;
      break;
    default:
      d.insn().execute = &each_lane<&sum_of_difference<int64_t>>;
      break;
  }
}

}  // namespace ptxsim
