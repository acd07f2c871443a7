// add, sub, mul, fma, mad of floating-point numbers: f32, f32x2, f64, f16, f16x2, bf16, bf16x2, and
// f32 with f16 or bf16 operands (PTX ISA 9.0, "Floating-Point", "Half Precision" and "Mixed
// Precision Floating-Point Instructions").
#include <type_traits>

#include "insn/alu/arithmetic.hpp"
#include "insn/alu/float_decode.hpp"
#include "insn/alu/float_values.hpp"
#include "insn/alu/lanes.hpp"
#include "machine/vector_clones.hpp"

namespace ptxsim {
namespace {

enum class Op : uint8_t { kAdd, kSub, kMul };

// Nearest even: the host's own operations.
template <Op kOp, class T>
T nearest(T a, T b) {
  if constexpr (kOp == Op::kAdd) return a + b;
  if constexpr (kOp == Op::kSub) return a - b;
  return a * b;
}
template <Op kOp, class T>
T rounded(T a, T b, Rounding rounding) {
  if (rounding == Rounding::kNearestEven) return nearest<kOp>(a, b);
  if constexpr (kOp == Op::kMul) return mul_rounded(a, b, rounding);
  return fma_rounded(a, T{1}, kOp == Op::kSub ? -b : b, rounding);
}
template <class T>
T fused(T a, T b, T c, Rounding rounding) {
  return rounding == Rounding::kNearestEven ? std::fma(a, b, c) : fma_rounded(a, b, c, rounding);
}

// The exact result of two floats, or that result rounded to odd.
template <Op kOp>
double to_odd(float a, float b) {
  if constexpr (kOp == Op::kMul) return static_cast<double>(a) * static_cast<double>(b);
  return fma_to_odd(a, 1.0f, kOp == Op::kSub ? -b : b);
}

template <Op kOp, bool kFlush, bool kClamp>
uint32_t f32_nearest(uint32_t a, uint32_t b) {
  const float x = f32_in<kFlush>(a), y = f32_in<kFlush>(b);
  // Sums below the normal range are exact, so that flushing them after rounding is the same.
  if constexpr (kFlush && kOp != Op::kMul) return flush_f32(f32_out<kClamp>(nearest<kOp>(x, y)));
  if constexpr (kFlush) return f32_flushed_out<kClamp>(to_odd<kOp>(x, y));
  return f32_out<kClamp>(nearest<kOp>(x, y));
}
template <Op kOp>
uint32_t f32_general(uint32_t a, uint32_t b, uint64_t modifiers) {
  const float x = f32_in(a, modifiers), y = f32_in(b, modifiers);
  return f32_out(rounded<kOp>(x, y, rounding_of(modifiers)), to_odd<kOp>(x, y), modifiers);
}
// The float nearest to a double rounded to odd is the fused result, in straight-line code.
template <bool kFlush, bool kClamp>
uint32_t f32_fma_nearest(uint32_t a, uint32_t b, uint32_t c) {
  const double exact = fma_to_odd(f32_in<kFlush>(a), f32_in<kFlush>(b), f32_in<kFlush>(c));
  return kFlush ? f32_flushed_out<kClamp>(exact) : f32_out<kClamp>(static_cast<float>(exact));
}

// All lanes of the form without modifiers, which products of matrices consist of: by the
// processor's own fused operation where it has one, with the same bits. Not with sanitizers, and
// not with clang 14 (machine/vector_clones.hpp).
#ifdef PTXSIM_HAS_VECTOR_CLONES
__attribute__((target("avx2,fma"))) void fma_all_lanes(const uint32_t* a, const uint32_t* b,
                                                       const uint32_t* c, uint32_t* to) {
  PTXSIM_LANES_INDEPENDENT
  for (int lane = 0; lane < kWarpSize; ++lane)
    to[lane] = f32_out<false>(
        std::fma(f32_in<false>(a[lane]), f32_in<false>(b[lane]), f32_in<false>(c[lane])));
}
__attribute__((target("default")))
#endif
void fma_all_lanes(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* to) {
  PTXSIM_LANES_INDEPENDENT
  for (int lane = 0; lane < kWarpSize; ++lane)
    to[lane] = f32_fma_nearest<false, false>(a[lane], b[lane], c[lane]);
}
Outcome f32_fma_without_modifiers(Execution& x, const Insn& insn) {
  if (x.mask != kAllLanes) return each_lane<&f32_fma_nearest<false, false>>(x, insn);
  fma_all_lanes(x.source<uint32_t>(insn.slot[1]), x.source<uint32_t>(insn.slot[2]),
                x.source<uint32_t>(insn.slot[3]), x.destination<uint32_t>(insn.slot[0]));
  return Outcome::kNext;
}
uint32_t f32_fma(uint32_t a, uint32_t b, uint32_t c, uint64_t modifiers) {
  const float x = f32_in(a, modifiers), y = f32_in(b, modifiers), z = f32_in(c, modifiers);
  return f32_out(fused(x, y, z, rounding_of(modifiers)), fma_to_odd(x, y, z), modifiers);
}

uint64_t join(uint32_t low, uint32_t high) { return low | (uint64_t{high} << 32); }
template <Op kOp>
uint64_t f32x2(uint64_t a, uint64_t b, uint64_t modifiers) {
  return join(
      f32_general<kOp>(static_cast<uint32_t>(a), static_cast<uint32_t>(b), modifiers),
      f32_general<kOp>(static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b >> 32), modifiers));
}
uint64_t f32x2_fma(uint64_t a, uint64_t b, uint64_t c, uint64_t modifiers) {
  return join(f32_fma(static_cast<uint32_t>(a), static_cast<uint32_t>(b), static_cast<uint32_t>(c),
                      modifiers),
              f32_fma(static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b >> 32),
                      static_cast<uint32_t>(c >> 32), modifiers));
}

double f64_in(uint64_t bits) { return std::bit_cast<double>(bits); }
template <Op kOp>
uint64_t f64_general(uint64_t a, uint64_t b, uint64_t modifiers) {
  return f64_out(rounded<kOp>(f64_in(a), f64_in(b), rounding_of(modifiers)), b, a);
}
uint64_t f64_fma(uint64_t a, uint64_t b, uint64_t c, uint64_t modifiers) {
  return f64_out(fused(f64_in(a), f64_in(b), f64_in(c), rounding_of(modifiers)), b, c, a);
}

// One rounding: sums of halves rounded to float and again are right, as a float has more than twice
// the digits; products and fused operations go through a double and values rounded to odd.
template <class H, Op kOp>
uint16_t half_general(uint16_t a, uint16_t b, uint64_t modifiers) {
  const float x = half_in<H>(a, modifiers), y = half_in<H>(b, modifiers);
  if constexpr (kOp == Op::kMul)
    return half_out<H>(float_to_odd(static_cast<double>(x) * static_cast<double>(y)), modifiers);
  return half_out<H>(nearest<kOp>(x, y), modifiers);
}
template <class H>
uint16_t half_fma(uint16_t a, uint16_t b, uint16_t c, uint64_t modifiers) {
  const double sum =
      fma_to_odd(half_in<H>(a, modifiers), half_in<H>(b, modifiers), half_in<H>(c, modifiers));
  return half_out<H>(float_to_odd(sum), modifiers);
}

// .oob: +0 where a factor is the NaN that tensor copies fill with (PTX ISA 9.0, "Tensors"); its
// bits are those that an H200 writes (machine/tensor_map.cpp).
template <class H>
uint16_t half_fma_oob(uint16_t a, uint16_t b, uint16_t c, uint64_t modifiers) {
  constexpr uint16_t kOutOfBounds = 0x7ff7;
  return a == kOutOfBounds || b == kOutOfBounds ? uint16_t{0} : half_fma<H>(a, b, c, modifiers);
}

// f32 results of operations on halves and floats.
template <class H, Op kOp>
uint32_t mixed(uint16_t a, uint32_t c, uint64_t modifiers) {
  return f32_general<kOp>(std::bit_cast<uint32_t>(H::decode(a)), c, modifiers);
}
template <class H>
uint32_t mixed_fma(uint16_t a, uint16_t b, uint32_t c, uint64_t modifiers) {
  return f32_fma(std::bit_cast<uint32_t>(H::decode(a)), std::bit_cast<uint32_t>(H::decode(b)), c,
                 modifiers);
}

template <Op kOp>
Handler f32_handler(uint64_t modifiers) {
  if (rounding_of(modifiers) != Rounding::kNearestEven) return &each_lane_imm<&f32_general<kOp>>;
  const bool sat = (modifiers & kSat) != 0;
  if ((modifiers & kFtz) != 0)
    return sat ? &each_lane<&f32_nearest<kOp, true, true>>
               : &each_lane<&f32_nearest<kOp, true, false>>;
  return sat ? &each_lane<&f32_nearest<kOp, false, true>>
             : &each_lane<&f32_nearest<kOp, false, false>>;
}
template <Op kOp>
Handler binary_handler(Type type, uint64_t modifiers) {
  switch (type) {
    case Type::kF32:
      return f32_handler<kOp>(modifiers);
    case Type::kF32x2:
      return &each_lane_imm<&f32x2<kOp>>;
    case Type::kF64:
      return &each_lane_imm<&f64_general<kOp>>;
    case Type::kF16:
      return &each_lane_imm<&half_general<HalfF16, kOp>>;
    case Type::kBf16:
      return &each_lane_imm<&half_general<HalfBf16, kOp>>;
    case Type::kF16x2:
      return &each_lane_imm<&binary_halves<&half_general<HalfF16, kOp>>>;
    default:
      return &each_lane_imm<&binary_halves<&half_general<HalfBf16, kOp>>>;
  }
}
Handler fma_handler(Type type, uint64_t modifiers) {
  const bool sat = (modifiers & kSat) != 0, ftz = (modifiers & kFtz) != 0;
  switch (type) {
    case Type::kF32:
      if (rounding_of(modifiers) != Rounding::kNearestEven) return &each_lane_imm<&f32_fma>;
      if (ftz)
        return sat ? &each_lane<&f32_fma_nearest<true, true>>
                   : &each_lane<&f32_fma_nearest<true, false>>;
      return sat ? &each_lane<&f32_fma_nearest<false, true>> : &f32_fma_without_modifiers;
    case Type::kF32x2:
      return &each_lane_imm<&f32x2_fma>;
    case Type::kF64:
      return &each_lane_imm<&f64_fma>;
    case Type::kF16:
      return &each_lane_imm<&half_fma<HalfF16>>;
    case Type::kBf16:
      return &each_lane_imm<&half_fma<HalfBf16>>;
    case Type::kF16x2:
      return &each_lane_imm<&ternary_halves<&half_fma<HalfF16>>>;
    default:
      return &each_lane_imm<&ternary_halves<&half_fma<HalfBf16>>>;
  }
}

Handler fma_oob_handler(Decode& d, Type type) {
  switch (type) {
    case Type::kF16:
      return &each_lane_imm<&half_fma_oob<HalfF16>>;
    case Type::kBf16:
      return &each_lane_imm<&half_fma_oob<HalfBf16>>;
    case Type::kF16x2:
      return &each_lane_imm<&ternary_halves<&half_fma_oob<HalfF16>>>;
    case Type::kBf16x2:
      return &each_lane_imm<&ternary_halves<&half_fma_oob<HalfBf16>>>;
    default:
      d.fail(".oob is known for 16-bit types alone");
  }
}

// What each type has: rz, rm, rp; .ftz; .sat; .relu (of fma).
void check_modifiers(const Decode& d, Type type, uint64_t modifiers, bool explicit_rounding) {
  const bool is_half = type == Type::kF16 || type == Type::kF16x2;
  const bool is_bf16 = type == Type::kBf16 || type == Type::kBf16x2;
  if ((is_half || is_bf16) && explicit_rounding && rounding_of(modifiers) != Rounding::kNearestEven)
    d.fail("16-bit types round to nearest even alone");
  if ((modifiers & kFtz) != 0 && (type == Type::kF64 || is_bf16))
    d.fail(".ftz is not known for this type");
  if ((modifiers & kSat) != 0 && type != Type::kF32 && !is_half)
    d.fail(".sat is not known for this type");
  if ((modifiers & kRelu) != 0 && !is_half && !is_bf16)
    d.fail(".relu is known for 16-bit types alone");
  if ((modifiers & kRelu) != 0 && (modifiers & kSat) != 0)
    d.fail(".relu and .sat exclude each other");
}

constexpr std::initializer_list<Type> kFloatTypes = {
    Type::kF32, Type::kF32x2, Type::kF64, Type::kF16, Type::kF16x2, Type::kBf16, Type::kBf16x2};

// add.f32.f16 and the like: the second type, kNone when there is none.
Type take_mixed_type(Decode& d, Type type) {
  if (type != Type::kF32) return Type::kNone;
  const Type second = d.modifiers().take_type();
  if (second != Type::kNone && second != Type::kF16 && second != Type::kBf16)
    d.fail("operands of the second type must be .f16 or .bf16");
  return second;
}

}  // namespace

void decode_float_add_sub(Decode& d) {
  const bool is_add = d.statement().root == "add";
  bool explicit_rounding;
  const uint64_t modifiers = take_float_modifiers(d, explicit_rounding);
  const Type type = take_type_of(d, kFloatTypes);
  const Type second = take_mixed_type(d, type);
  check_modifiers(d, type, modifiers, explicit_rounding);
  d.insn().imm = modifiers;
  if (second == Type::kNone) {
    take_operands(d, type, {type, type});
    d.insn().execute = is_add ? binary_handler<Op::kAdd>(type, modifiers)
                              : binary_handler<Op::kSub>(type, modifiers);
    return;
  }
  if ((modifiers & kFtz) != 0) d.fail(".ftz is not known for mixed types");
  take_operands(d, type, {second, type});
  if (second == Type::kF16) {
    d.insn().execute = is_add ? &each_lane_imm<&mixed<HalfF16, Op::kAdd>>
                              : &each_lane_imm<&mixed<HalfF16, Op::kSub>>;
  } else {
    d.insn().execute = is_add ? &each_lane_imm<&mixed<HalfBf16, Op::kAdd>>
                              : &each_lane_imm<&mixed<HalfBf16, Op::kSub>>;
  }
}

void decode_float_mul(Decode& d) {
  bool explicit_rounding;
  const uint64_t modifiers = take_float_modifiers(d, explicit_rounding);
  const Type type = take_type_of(d, kFloatTypes);
  check_modifiers(d, type, modifiers, explicit_rounding);
  take_operands(d, type, {type, type});
  d.insn().imm = modifiers;
  d.insn().execute = binary_handler<Op::kMul>(type, modifiers);
}

void decode_float_fma(Decode& d) {
  bool explicit_rounding;
  const uint64_t modifiers =
      take_float_modifiers(d, explicit_rounding) | (d.modifiers().take("relu") ? kRelu : 0);
  if (!explicit_rounding) d.fail("a rounding, .rn .rz .rm or .rp, must be given");
  const Type type = take_type_of(d, kFloatTypes);
  const Type second = take_mixed_type(d, type);
  check_modifiers(d, type, modifiers, explicit_rounding);
  d.insn().imm = modifiers;
  if (second == Type::kNone) {
    take_operands(d, type, {type, type, type});
    const bool oob = d.modifiers().take("oob");
    if (oob && (modifiers & (kFtz | kSat)) != 0) d.fail(".oob excludes .ftz and .sat");
    d.insn().execute = oob ? fma_oob_handler(d, type) : fma_handler(type, modifiers);
    return;
  }
  if ((modifiers & kFtz) != 0) d.fail(".ftz is not known for mixed types");
  take_operands(d, type, {second, second, type});
  d.insn().execute = second == Type::kF16 ? &each_lane_imm<&mixed_fma<HalfF16>>
                                          : &each_lane_imm<&mixed_fma<HalfBf16>>;
}

}  // namespace ptxsim
