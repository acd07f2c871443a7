// Bit counts and bit fields: popc, clz, brev, bfind, fns, bfe, bfi, bmsk, szext (PTX ISA 9.0,
// "Integer Arithmetic Instructions").
#include <algorithm>
#include <bit>
#include <type_traits>

#include "insn/alu/arithmetic.hpp"
#include "insn/alu/lanes.hpp"

namespace ptxsim {
namespace {

template <class T>
constexpr uint32_t kBits = 8 * sizeof(T);

template <class T>
uint32_t count_ones(T a) {
  return static_cast<uint32_t>(std::popcount(a));
}
template <class T>
uint32_t count_leading_zeros(T a) {
  return static_cast<uint32_t>(std::countl_zero(a));
}
template <class T>
T reversed(T a) {
  T result = 0;
  for (uint32_t i = 0; i < kBits<T>; ++i) result = static_cast<T>((result << 1) | ((a >> i) & 1));
  return result;
}

// Position of the most significant bit that is not a copy of the sign; all ones when there is none.
// kShift: the number of bits to shift it left to the top instead.
template <class T, bool kShift>
uint32_t find_bit(T a) {
  using U = std::make_unsigned_t<T>;
  U bits = static_cast<U>(a);
  if (std::is_signed_v<T> && a < 0) bits = static_cast<U>(~bits);
  if (bits == 0) return 0xffffffffu;
  const uint32_t leading = static_cast<uint32_t>(std::countl_zero(bits));
  return kShift ? leading : kBits<T> - 1 - leading;
}

// The |offset|-th set bit of the mask from bit `base` on, upwards or downwards.
uint32_t find_nth_set(uint32_t mask, uint32_t base, int32_t offset) {
  constexpr uint32_t kNone = 0xffffffffu;
  if (offset == 0) return base < 32 && ((mask >> base) & 1) != 0 ? base : kNone;
  const int64_t step = offset > 0 ? 1 : -1;
  int64_t left = offset > 0 ? int64_t{offset} : -int64_t{offset};
  for (int64_t position = base; position >= 0 && position < 32; position += step)
    if (((mask >> position) & 1) != 0 && --left == 0) return static_cast<uint32_t>(position);
  return kNone;
}

template <class T>
T low_bits(uint32_t count) {
  return count >= kBits<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << count) - 1);
}

// Positions and lengths: the low 8 bits of their operands for fields of 32 bits, and the whole
// operands for those of 64, as an H100 has it, whatever the manual says.
template <class T>
uint32_t field_amount(uint32_t operand) {
  return kBits<T> == 32 ? operand & 0xff : std::min(operand, kBits<T>);
}

template <class T>
T extract_field(T a, uint32_t position, uint32_t length) {
  using U = std::make_unsigned_t<T>;
  position = field_amount<T>(position);
  length = field_amount<T>(length);
  const U bits = static_cast<U>(a);
  const uint32_t sign_position = std::min(position + length - 1, kBits<T> - 1);
  const bool fill = std::is_signed_v<T> && length != 0 && ((bits >> sign_position) & 1) != 0;
  const uint32_t available = position < kBits<T> ? std::min(length, kBits<T> - position) : 0;
  const U mask = low_bits<U>(available);
  const U field = position < kBits<T> ? static_cast<U>((bits >> position) & mask) : U{0};
  return static_cast<T>(fill ? static_cast<U>(field | static_cast<U>(~mask)) : field);
}
template <class T>
T insert_field(T a, T b, uint32_t position, uint32_t length) {
  position = field_amount<T>(position);
  length = field_amount<T>(length);
  if (position >= kBits<T> || length == 0) return b;
  const T mask = static_cast<T>(low_bits<T>(length) << position);
  return static_cast<T>((b & ~mask) | (static_cast<T>(a << position) & mask));
}

template <bool kClamp>
uint32_t bit_mask(uint32_t a, uint32_t b) {
  if (kClamp && a >= 32) return 0;
  const uint32_t begin = a & 31;
  const uint32_t width = kClamp && b >= 32 ? 32 : b & 31;
  return low_bits<uint32_t>(width) << begin;
}
template <bool kClamp, bool kSigned>
uint32_t extend(uint32_t a, uint32_t b) {
  if (kClamp && b >= 32) return a;
  const uint32_t bits = b & 31;
  if (bits == 0) return 0;
  const uint32_t mask = low_bits<uint32_t>(bits);
  const bool negative = kSigned && ((a >> (bits - 1)) & 1) != 0;
  return negative ? a | ~mask : a & mask;
}

template <class T>
Handler find_handler(bool shift) {
  return shift ? &each_lane<&find_bit<T, true>> : &each_lane<&find_bit<T, false>>;
}

}  // namespace

void decode_bit_count(Decode& d) {
  const std::string& root = d.statement().root;
  const Type type = take_type_of(d, {Type::kB32, Type::kB64});
  const bool wide = type == Type::kB64;
  take_operands(d, root == "brev" ? type : Type::kU32, {type});
  if (root == "popc") {
    d.insn().execute = wide ? &each_lane<&count_ones<uint64_t>> : &each_lane<&count_ones<uint32_t>>;
  } else if (root == "clz") {
    d.insn().execute = wide ? &each_lane<&count_leading_zeros<uint64_t>>
                            : &each_lane<&count_leading_zeros<uint32_t>>;
  } else {
    d.insn().execute = wide ? &each_lane<&reversed<uint64_t>> : &each_lane<&reversed<uint32_t>>;
  }
}

void decode_bfind(Decode& d) {
  const bool shift = d.modifiers().take("shiftamt");
  const Type type = take_type_of(d, {Type::kU32, Type::kS32, Type::kU64, Type::kS64});
  take_operands(d, Type::kU32, {type});
  switch (type) {
    case Type::kU32:
      d.insn().execute = find_handler<uint32_t>(shift);
      break;
    case Type::kS32:
      d.insn().execute = find_handler<int32_t>(shift);
      break;
    case Type::kU64:
      d.insn().execute = find_handler<uint64_t>(shift);
      break;
    default:
      d.insn().execute = find_handler<int64_t>(shift);
      break;
  }
}

void decode_fns(Decode& d) {
  take_type_of(d, {Type::kB32});
  take_operands(d, Type::kB32, {Type::kB32, Type::kB32, Type::kS32});
  d.insn().execute = &each_lane<&find_nth_set>;
}

void decode_bit_field(Decode& d) {
  if (d.statement().root == "bfi") {
    const Type type = take_type_of(d, {Type::kB32, Type::kB64});
    take_operands(d, type, {type, type, Type::kU32, Type::kU32});
    d.insn().execute = type == Type::kB64 ? &each_lane<&insert_field<uint64_t>>
                                          : &each_lane<&insert_field<uint32_t>>;
    return;
  }
  const Type type = take_type_of(d, {Type::kU32, Type::kS32, Type::kU64, Type::kS64});
  take_operands(d, type, {type, Type::kU32, Type::kU32});
  switch (type) {
    case Type::kU32:
      d.insn().execute = &each_lane<&extract_field<uint32_t>>;
      break;
    case Type::kS32:
      d.insn().execute = &each_lane<&extract_field<int32_t>>;
      break;
    case Type::kU64:
      d.insn().execute = &each_lane<&extract_field<uint64_t>>;
      break;
    default:
      d.insn().execute = &each_lane<&extract_field<int64_t>>;
      break;
  }
}

void decode_bmsk_szext(Decode& d) {
  const int wrap = d.modifiers().take_one_of({"clamp", "wrap"});
  if (wrap < 0) d.fail("one of .clamp and .wrap must be given");
  if (d.statement().root == "bmsk") {
    take_type_of(d, {Type::kB32});
    d.insn().execute = wrap == 1 ? &each_lane<&bit_mask<false>> : &each_lane<&bit_mask<true>>;
  } else if (take_type_of(d, {Type::kU32, Type::kS32}) == Type::kS32) {
    d.insn().execute =
        wrap == 1 ? &each_lane<&extend<false, true>> : &each_lane<&extend<true, true>>;
  } else {
    d.insn().execute =
        wrap == 1 ? &each_lane<&extend<false, false>> : &each_lane<&extend<true, false>>;
  }
  take_operands(d, Type::kB32, {Type::kB32, Type::kB32});
}

}  // namespace ptxsim
