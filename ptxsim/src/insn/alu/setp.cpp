// setp, set, testp (PTX ISA 9.0, "Comparison and Selection Instructions", "Half Precision
// Comparison Instructions", "testp").
#include <fmt/format.h>

#include "insn/alu/float_values.hpp"
#include "insn/alu/lanes.hpp"
#include "insn/registry.hpp"
#include "insn/traits.hpp"

namespace ptxsim {
namespace {

enum class Relation : uint8_t {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan
};

// One comparison of all 32 lanes, as a mask. Lanes that do not execute are compared too, and not
// used.
using LaneCompare = uint32_t (*)(const std::byte* a, const std::byte* b);

template <Relation kRelation, class T>
bool holds(T a, T b) {
  const bool unordered = a != a || b != b;
  switch (kRelation) {
    case Relation::kEq:
      return a == b;
    case Relation::kNe:
      return a != b && !unordered;
    case Relation::kLt:
      return a < b;
    case Relation::kLe:
      return a <= b;
    case Relation::kGt:
      return a > b;
    case Relation::kGe:
      return a >= b;
    case Relation::kEqu:
      return unordered || a == b;
    case Relation::kNeu:
      return unordered || a != b;
    case Relation::kLtu:
      return unordered || a < b;
    case Relation::kLeu:
      return unordered || a <= b;
    case Relation::kGtu:
      return unordered || a > b;
    case Relation::kGeu:
      return unordered || a >= b;
    case Relation::kNum:
      return !unordered;
    case Relation::kNan:
      return unordered;
  }
  return false;
}

// How a lane's bits become a number: kStride registers' elements per lane, element kIndex of them
// (halves of a word).
template <class Bits, class T, T (*kValue)(Bits), int kStride = 1, int kIndex = 0>
struct Source {
  using BitsType = Bits;
  static T value(const Bits* lanes, int lane) { return kValue(lanes[lane * kStride + kIndex]); }
};
template <Relation kRelation, class S>
uint32_t compare_lanes(const std::byte* a, const std::byte* b) {
  const auto* x = reinterpret_cast<const typename S::BitsType*>(a);
  const auto* y = reinterpret_cast<const typename S::BitsType*>(b);
  uint32_t mask = 0;
  for (int lane = 0; lane < kWarpSize; ++lane)
    mask |= static_cast<uint32_t>(holds<kRelation>(S::value(x, lane), S::value(y, lane))) << lane;
  return mask;
}

template <class T>
T itself(T a) {
  return a;
}
template <bool kFlush>
float f32_value(uint32_t bits) {
  return f32_in<kFlush>(bits);
}
template <class H, bool kFlush>
float half_value(uint16_t bits) {
  return H::decode(kFlush ? H::flush(bits) : bits);
}
template <class T>
using Integer = Source<T, T, &itself<T>>;
template <bool kFlush>
using F32 = Source<uint32_t, float, &f32_value<kFlush>>;
using F64 = Source<double, double, &itself<double>>;
template <class H, bool kFlush, int kStride = 1, int kIndex = 0>
using Half = Source<uint16_t, float, &half_value<H, kFlush>, kStride, kIndex>;

template <class S>
LaneCompare ordered(Relation relation) {
  switch (relation) {
    case Relation::kEq:
      return &compare_lanes<Relation::kEq, S>;
    case Relation::kNe:
      return &compare_lanes<Relation::kNe, S>;
    case Relation::kLt:
      return &compare_lanes<Relation::kLt, S>;
    case Relation::kLe:
      return &compare_lanes<Relation::kLe, S>;
    case Relation::kGt:
      return &compare_lanes<Relation::kGt, S>;
    default:
      return &compare_lanes<Relation::kGe, S>;
  }
}
template <class S>
LaneCompare with_unordered(Relation relation) {
  switch (relation) {
    case Relation::kEqu:
      return &compare_lanes<Relation::kEqu, S>;
    case Relation::kNeu:
      return &compare_lanes<Relation::kNeu, S>;
    case Relation::kLtu:
      return &compare_lanes<Relation::kLtu, S>;
    case Relation::kLeu:
      return &compare_lanes<Relation::kLeu, S>;
    case Relation::kGtu:
      return &compare_lanes<Relation::kGtu, S>;
    case Relation::kGeu:
      return &compare_lanes<Relation::kGeu, S>;
    case Relation::kNum:
      return &compare_lanes<Relation::kNum, S>;
    case Relation::kNan:
      return &compare_lanes<Relation::kNan, S>;
    default:
      return ordered<S>(relation);
  }
}

LaneCompare integer_compare(Type type, Relation relation) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
      return ordered<Integer<uint16_t>>(relation);
    case Type::kS16:
      return ordered<Integer<int16_t>>(relation);
    case Type::kB32:
    case Type::kU32:
      return ordered<Integer<uint32_t>>(relation);
    case Type::kS32:
      return ordered<Integer<int32_t>>(relation);
    case Type::kB64:
    case Type::kU64:
      return ordered<Integer<uint64_t>>(relation);
    default:
      return ordered<Integer<int64_t>>(relation);
  }
}
LaneCompare float_compare(Type type, Relation relation, bool ftz, bool high) {
  switch (type) {
    case Type::kF32:
      return ftz ? with_unordered<F32<true>>(relation) : with_unordered<F32<false>>(relation);
    case Type::kF64:
      return with_unordered<F64>(relation);
    case Type::kF16:
      return ftz ? with_unordered<Half<HalfF16, true>>(relation)
                 : with_unordered<Half<HalfF16, false>>(relation);
    case Type::kBf16:
      return with_unordered<Half<HalfBf16, false>>(relation);
    case Type::kF16x2:
      if (ftz)
        return high ? with_unordered<Half<HalfF16, true, 2, 1>>(relation)
                    : with_unordered<Half<HalfF16, true, 2, 0>>(relation);
      return high ? with_unordered<Half<HalfF16, false, 2, 1>>(relation)
                  : with_unordered<Half<HalfF16, false, 2, 0>>(relation);
    default:
      return high ? with_unordered<Half<HalfBf16, false, 2, 1>>(relation)
                  : with_unordered<Half<HalfBf16, false, 2, 0>>(relation);
  }
}

enum class Boolean : int8_t { kNone = -1, kAnd, kOr, kXor };

struct Comparison : Detail {
  LaneCompare low = nullptr, high = nullptr;  // high: of f16x2 and bf16x2
  Boolean boolean = Boolean::kNone;
  bool negate_c = false;
  uint32_t when_true = 0;  // set: what is written
};

uint32_t combine(Boolean boolean, uint32_t t, uint32_t c) {
  switch (boolean) {
    case Boolean::kAnd:
      return t & c;
    case Boolean::kOr:
      return t | c;
    case Boolean::kXor:
      return t ^ c;
    default:
      return t;
  }
}

// slot[2] and [3] are compared; slot[4] is the third predicate.
uint32_t third(Execution& x, const Insn& insn, const Comparison& how) {
  return how.boolean == Boolean::kNone ? 0 : x.predicate(insn.slot[4], how.negate_c);
}
Outcome set_predicates(Execution& x, const Insn& insn) {
  const auto& how = *static_cast<const Comparison*>(insn.detail);
  const std::byte* a = x.source<std::byte>(insn.slot[2]);
  const std::byte* b = x.source<std::byte>(insn.slot[3]);
  const uint32_t t = how.low(a, b);
  const uint32_t c = third(x, insn, how);
  x.set_predicate(insn.slot[0], combine(how.boolean, t, c));
  if (insn.slot[1].present())
    x.set_predicate(insn.slot[1],
                    combine(how.boolean, how.high != nullptr ? how.high(a, b) : ~t, c));
  return Outcome::kNext;
}
template <class T>
Outcome set_value(Execution& x, const Insn& insn) {
  const auto& how = *static_cast<const Comparison*>(insn.detail);
  const std::byte* a = x.source<std::byte>(insn.slot[2]);
  const std::byte* b = x.source<std::byte>(insn.slot[3]);
  const uint32_t c = third(x, insn, how);
  const uint32_t low = combine(how.boolean, how.low(a, b), c);
  const uint32_t high = how.high != nullptr ? combine(how.boolean, how.high(a, b), c) : 0;
  T* out = x.destination<T>(insn.slot[0]);
  x.for_lanes([&](int lane) {
    uint32_t value = ((low >> lane) & 1) != 0 ? how.when_true : 0;
    if (((high >> lane) & 1) != 0) value |= how.when_true << 16;
    out[lane] = static_cast<T>(value);
  });
  return Outcome::kNext;
}

bool is_half_pair(Type type) { return type == Type::kF16x2 || type == Type::kBf16x2; }
bool is_unsigned(Type type) {
  return type == Type::kU16 || type == Type::kU32 || type == Type::kU64;
}
bool is_bits(Type type) { return type == Type::kB16 || type == Type::kB32 || type == Type::kB64; }

struct Taken {
  int relation;  // index into the names below
  Boolean boolean;
  bool ftz;
};
Taken take_comparison(Decode& d) {
  const int relation =
      d.modifiers().take_one_of({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu",
                                 "gtu", "geu", "num", "nan", "lo", "ls", "hi", "hs"});
  if (relation < 0) d.fail(d.statement().root + " names no comparison");
  const auto boolean = static_cast<Boolean>(d.modifiers().take_one_of({"and", "or", "xor"}));
  return {relation, boolean, d.modifiers().take("ftz")};
}

constexpr std::initializer_list<Type> kComparable = {
    Type::kB16, Type::kB32, Type::kB64,  Type::kU16,   Type::kU32,
    Type::kU64, Type::kS16, Type::kS32,  Type::kS64,   Type::kF32,
    Type::kF64, Type::kF16, Type::kBf16, Type::kF16x2, Type::kBf16x2};

// Fills the detail, and slots 2, 3 and 4 from operands 1, 2 and 3.
Comparison* decode_comparison(Decode& d, const Taken& taken, Type type) {
  constexpr int kFirstUnsigned = 14;  // lo, ls, hi, hs: lt, le, gt, ge of unsigned numbers
  const bool unsigned_form = taken.relation >= kFirstUnsigned;
  const auto relation = unsigned_form ? static_cast<Relation>(taken.relation - kFirstUnsigned + 2)
                                      : static_cast<Relation>(taken.relation);
  if (unsigned_form && !is_unsigned(type))
    d.fail(".lo .ls .hi .hs are known for unsigned types alone");
  if (is_bits(type) && relation != Relation::kEq && relation != Relation::kNe)
    d.fail("types .b16 .b32 .b64 can be compared with .eq and .ne alone");
  if (!is_float(type) && relation >= Relation::kEqu)
    d.fail("this comparison is known for floating-point types alone");
  if (taken.ftz && type != Type::kF32 && type != Type::kF16 && type != Type::kF16x2)
    d.fail(".ftz is not known for this type");
  auto* how = d.make_detail<Comparison>();
  how->boolean = taken.boolean;
  how->low = is_float(type) ? float_compare(type, relation, taken.ftz, false)
                            : integer_compare(type, relation);
  if (is_half_pair(type)) how->high = float_compare(type, relation, taken.ftz, true);
  const size_t operands = taken.boolean == Boolean::kNone ? 3 : 4;
  d.expect_operands(operands, operands);
  d.insn().slot[2] = d.source(1, type);
  d.insn().slot[3] = d.source(2, type);
  if (taken.boolean != Boolean::kNone) {
    d.insn().slot[4] = d.predicate(3);
    how->negate_c = d.is_negated(3);
  }
  return how;
}

void decode_setp(Decode& d) {
  const Taken taken = take_comparison(d);
  const Type type = take_type_of(d, kComparable);
  decode_comparison(d, taken, type);
  const Operand& to = d.operand(0);
  const bool pair = to.kind == Operand::Kind::kPair;  // without one: the lower of two halves alone
  d.insn().slot[0] = d.destination(pair ? to.parts[0] : to, Type::kPred);
  if (pair) d.insn().slot[1] = d.destination(to.parts[1], Type::kPred);
  d.insn().execute = &set_predicates;
}

uint32_t true_value(Type destination, Type source) {
  switch (destination) {
    case Type::kU16:
    case Type::kS16:
      return 0xffffu;
    case Type::kU32:
    case Type::kS32:
      return is_half_pair(source) ? 0xffffu : 0xffffffffu;
    case Type::kF32:
      return 0x3f800000u;
    case Type::kF16:
    case Type::kF16x2:
      return HalfF16::kOne;
    default:
      return HalfBf16::kOne;
  }
}

void decode_set(Decode& d) {
  const Taken taken = take_comparison(d);
  const Type destination =
      take_type_of(d, {Type::kU16, Type::kS16, Type::kU32, Type::kS32, Type::kF32, Type::kF16,
                       Type::kBf16, Type::kF16x2, Type::kBf16x2});
  const Type source = take_type_of(d, kComparable);
  if (is_half_pair(destination) && destination != source)
    d.fail(fmt::format("a destination of type .{} needs sources of the same type",
                       name_of(destination)));
  if (is_half_pair(source) && bytes_of(destination) != 4)
    d.fail("two halves need a destination of 32 bits");
  Comparison* how = decode_comparison(d, taken, source);
  how->when_true = true_value(destination, source);
  d.insn().slot[0] = d.destination(0, destination);
  if (!d.insn().slot[0].present()) d.fail("set needs a destination; '_' is not one");
  d.insn().execute = bytes_of(destination) == 2 ? &set_value<uint16_t> : &set_value<uint32_t>;
}

// A zero counts as normal.
enum class Property : uint8_t { kFinite, kInfinite, kNumber, kNotanumber, kNormal, kSubnormal };
template <class T, Property kProperty>
bool has_property(T a) {
  switch (kProperty) {
    case Property::kFinite:
      return std::isfinite(a);
    case Property::kInfinite:
      return std::isinf(a);
    case Property::kNumber:
      return !std::isnan(a);
    case Property::kNotanumber:
      return std::isnan(a);
    case Property::kNormal:
      return std::isnormal(a) || a == 0;
    case Property::kSubnormal:
      return std::fpclassify(a) == FP_SUBNORMAL;
  }
  return false;
}
template <class T>
constexpr Handler kPropertyHandlers[] = {
    &each_lane_predicate<&has_property<T, Property::kFinite>>,
    &each_lane_predicate<&has_property<T, Property::kInfinite>>,
    &each_lane_predicate<&has_property<T, Property::kNumber>>,
    &each_lane_predicate<&has_property<T, Property::kNotanumber>>,
    &each_lane_predicate<&has_property<T, Property::kNormal>>,
    &each_lane_predicate<&has_property<T, Property::kSubnormal>>,
};

void decode_testp(Decode& d) {
  const int property = d.modifiers().take_one_of(
      {"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  if (property < 0) d.fail("testp names no property");
  const Type type = take_type_of(d, {Type::kF32, Type::kF64});
  d.expect_operands(2, 2);
  d.insn().slot[0] = d.destination(0, Type::kPred);
  d.insn().slot[1] = d.source(1, type);
  d.insn().execute =
      type == Type::kF32 ? kPropertyHandlers<float>[property] : kPropertyHandlers<double>[property];
}

}  // namespace

std::span<const Decoder> decoders_compare() {
  static constexpr Decoder kDecoders[] = {{"setp", decode_setp, traits::kArithmetic},
                                          {"set", decode_set, traits::kComputing},
                                          {"testp", decode_testp, traits::kComputing}};
  return kDecoders;
}

}  // namespace ptxsim
