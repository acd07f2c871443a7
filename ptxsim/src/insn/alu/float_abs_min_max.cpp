// abs, neg, min, max, copysign of floating-point numbers (PTX ISA 9.0, "Floating-Point
// Instructions" and "Half Precision Floating-Point Instructions"). In min and max -0 is less than
// +0.
#include "insn/alu/arithmetic.hpp"
#include "insn/alu/float_decode.hpp"
#include "insn/alu/float_values.hpp"
#include "insn/alu/lanes.hpp"

namespace ptxsim {
namespace {

// T: unsigned integer of the format's width.
template <class T>
constexpr T kSignBit = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
template <class T>
T absolute(T a) {
  return a & static_cast<T>(~kSignBit<T>);
}
template <class T>
T copy_sign(T a, T b) {
  return (a & kSignBit<T>) | absolute(b);
}

// Formats by their codes: infinity's, and what a NaN becomes. PTX leaves open which NaN abs and neg
// give, and min and max of f64; these are an H200's.
struct F32Codes {
  using Bits = uint32_t;
  static constexpr Bits kInfinity = 0x7f800000u;
  static Bits nan_from(Bits) { return kNanF32; }
  static Bits flush(Bits bits) { return flush_f32(bits); }
};
struct F64Codes {
  using Bits = uint64_t;
  static constexpr Bits kInfinity = 0x7ff0000000000000u;
  static Bits nan_from(Bits nan) { return quiet_f64(nan); }
  static Bits flush(Bits bits) { return bits; }
};
template <class H>
struct HalfCodes {
  using Bits = uint16_t;
  static constexpr Bits kInfinity = H::kExponent;
  static Bits nan_from(Bits) { return kNanHalf; }
  static Bits flush(Bits bits) { return H::flush(bits); }
};
using F16Codes = HalfCodes<HalfF16>;
using Bf16Codes = HalfCodes<HalfBf16>;

template <class F>
bool is_nan(typename F::Bits a) {
  return absolute(a) > F::kInfinity;
}

// abs (kAbsolute) or neg.
template <class F, bool kAbsolute>
typename F::Bits with_sign(typename F::Bits a, uint64_t modifiers) {
  using Bits = typename F::Bits;
  if (is_nan<F>(a)) return F::nan_from(a);
  const Bits result = kAbsolute ? absolute(a) : static_cast<Bits>(a ^ kSignBit<Bits>);
  return (modifiers & kFtz) != 0 ? F::flush(result) : result;
}

template <bool kAbsolute>
Handler sign_handler(Type type) {
  switch (type) {
    case Type::kF32:
      return &each_lane_imm<&with_sign<F32Codes, kAbsolute>>;
    case Type::kF64:
      return &each_lane_imm<&with_sign<F64Codes, kAbsolute>>;
    case Type::kF16:
      return &each_lane_imm<&with_sign<F16Codes, kAbsolute>>;
    case Type::kBf16:
      return &each_lane_imm<&with_sign<Bf16Codes, kAbsolute>>;
    case Type::kF16x2:
      return &each_lane_imm<&unary_halves<&with_sign<F16Codes, kAbsolute>>>;
    default:
      return &each_lane_imm<&unary_halves<&with_sign<Bf16Codes, kAbsolute>>>;
  }
}

template <class F, bool kMin>
typename F::Bits lesser_or_greater(typename F::Bits a, typename F::Bits b, bool nan_wins) {
  using Bits = typename F::Bits;
  const bool a_nan = is_nan<F>(a), b_nan = is_nan<F>(b);
  if ((a_nan && b_nan) || (nan_wins && (a_nan || b_nan))) return F::nan_from(b_nan ? b : a);
  if (a_nan) return b;
  if (b_nan) return a;
  // Codes as numbers in the order of the values: negative ones count down from the middle.
  const auto rank = [](Bits bits) {
    return (bits & kSignBit<Bits>) != 0 ? static_cast<Bits>(~bits)
                                        : static_cast<Bits>(bits | kSignBit<Bits>);
  };
  const bool a_less = rank(a) < rank(b);
  return a_less == kMin ? a : b;
}

template <class F>
typename F::Bits prepared(typename F::Bits a, uint64_t modifiers) {
  if ((modifiers & kFtz) != 0) a = F::flush(a);
  return (modifiers & kAbs) != 0 ? absolute(a) : a;
}
template <class F, bool kMin>
typename F::Bits min_max(typename F::Bits a, typename F::Bits b, uint64_t modifiers) {
  using Bits = typename F::Bits;
  const Bits sign = (a ^ b) & kSignBit<Bits>;
  const Bits result = lesser_or_greater<F, kMin>(
      prepared<F>(a, modifiers), prepared<F>(b, modifiers), (modifiers & kNanResult) != 0);
  if ((modifiers & kXorSign) != 0 && !is_nan<F>(result)) return absolute(result) | sign;
  return result;
}
template <bool kMin>
uint32_t min_max_of_three(uint32_t a, uint32_t b, uint32_t c, uint64_t modifiers) {
  return min_max<F32Codes, kMin>(min_max<F32Codes, kMin>(a, b, modifiers), c, modifiers);
}

template <bool kMin>
Handler min_max_handler(Type type, bool three) {
  switch (type) {
    case Type::kF32:
      return three ? &each_lane_imm<&min_max_of_three<kMin>>
                   : &each_lane_imm<&min_max<F32Codes, kMin>>;
    case Type::kF64:
      return &each_lane_imm<&min_max<F64Codes, kMin>>;
    case Type::kF16:
      return &each_lane_imm<&min_max<F16Codes, kMin>>;
    case Type::kBf16:
      return &each_lane_imm<&min_max<Bf16Codes, kMin>>;
    case Type::kF16x2:
      return &each_lane_imm<&binary_halves<&min_max<F16Codes, kMin>>>;
    default:
      return &each_lane_imm<&binary_halves<&min_max<Bf16Codes, kMin>>>;
  }
}

constexpr std::initializer_list<Type> kTypes = {Type::kF32,   Type::kF64,  Type::kF16,
                                                Type::kF16x2, Type::kBf16, Type::kBf16x2};
bool has_ftz(Type type) { return type == Type::kF32 || type == Type::kF16 || type == Type::kF16x2; }

}  // namespace

void decode_float_abs_neg(Decode& d) {
  const bool ftz = d.modifiers().take("ftz");
  const Type type = take_type_of(d, kTypes);
  if (ftz && !has_ftz(type)) d.fail(".ftz is not known for this type");
  take_operands(d, type, {type});
  d.insn().imm = ftz ? kFtz : 0;
  d.insn().execute =
      d.statement().root == "abs" ? sign_handler<true>(type) : sign_handler<false>(type);
}

void decode_float_min_max(Decode& d) {
  uint64_t modifiers = 0;
  if (d.modifiers().take("ftz")) modifiers |= kFtz;
  if (d.modifiers().take("NaN")) modifiers |= kNanResult;
  if (d.modifiers().take("xorsign")) modifiers |= kXorSign;
  if (d.modifiers().take("abs")) modifiers |= kAbs;
  const Type type = take_type_of(d, kTypes);
  const bool three = d.num_operands() == 4;
  if ((modifiers & kFtz) != 0 && !has_ftz(type)) d.fail(".ftz is not known for this type");
  if (modifiers != 0 && type == Type::kF64) d.fail(".f64 has no modifiers here");
  if ((modifiers & kXorSign) != 0 && (modifiers & kAbs) == 0) d.fail(".xorsign needs .abs");
  if ((modifiers & kXorSign) != 0 && three) d.fail(".xorsign is known for two operands alone");
  if (three && type != Type::kF32) d.fail("three operands are known for .f32 alone");
  if ((modifiers & kAbs) != 0 && (modifiers & kXorSign) == 0 && !three)
    d.fail(".abs without .xorsign is known for three operands alone");
  d.insn().imm = modifiers;
  if (three) {
    take_operands(d, type, {type, type, type});
  } else {
    take_operands(d, type, {type, type});
  }
  d.insn().execute = d.statement().root == "min" ? min_max_handler<true>(type, three)
                                                 : min_max_handler<false>(type, three);
}

void decode_copysign(Decode& d) {
  const Type type = take_type_of(d, {Type::kF32, Type::kF64});
  take_operands(d, type, {type, type});
  d.insn().execute =
      type == Type::kF32 ? &each_lane<&copy_sign<uint32_t>> : &each_lane<&copy_sign<uint64_t>>;
}

}  // namespace ptxsim
