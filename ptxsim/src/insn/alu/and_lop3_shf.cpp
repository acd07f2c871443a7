// and, or, xor, not, cnot, lop3, shl, shr, shf (PTX ISA 9.0, "Logic and Shift Instructions").
#include <algorithm>
#include <type_traits>

#include "insn/alu/arithmetic.hpp"
#include "insn/alu/lanes.hpp"

namespace ptxsim {
namespace {

template <class T>
T bit_and(T a, T b) {
  return a & b;
}
template <class T>
T bit_or(T a, T b) {
  return a | b;
}
template <class T>
T bit_xor(T a, T b) {
  return a ^ b;
}
template <class T>
T bit_not(T a) {
  return static_cast<T>(~a);
}
template <class T>
T logical_not(T a) {
  return a == 0 ? T{1} : T{0};
}

enum class Operation : uint8_t { kAnd, kOr, kXor, kNot, kCnot };

template <class T>
Handler logic_handler(Operation operation) {
  switch (operation) {
    case Operation::kAnd:
      return &each_lane<&bit_and<T>>;
    case Operation::kOr:
      return &each_lane<&bit_or<T>>;
    case Operation::kXor:
      return &each_lane<&bit_xor<T>>;
    case Operation::kNot:
      return &each_lane<&bit_not<T>>;
    default:
      return &each_lane<&logical_not<T>>;
  }
}

// Predicates are one mask for the warp. Insn::variant: bit 0 and 1 negate the sources.
template <Operation kOperation>
Outcome predicate_logic(Execution& x, const Insn& insn) {
  const uint32_t a = x.predicate(insn.slot[1], (insn.variant & 1) != 0);
  if constexpr (kOperation == Operation::kNot) {
    x.set_predicate(insn.slot[0], ~a);
  } else {
    const uint32_t b = x.predicate(insn.slot[2], (insn.variant & 2) != 0);
    x.set_predicate(insn.slot[0], kOperation == Operation::kAnd  ? a & b
                                  : kOperation == Operation::kOr ? a | b
                                                                 : a ^ b);
  }
  return Outcome::kNext;
}

void decode_predicate_logic(Decode& d, Operation operation) {
  if (operation == Operation::kCnot) d.fail("cnot is not known for predicates");
  const size_t sources = operation == Operation::kNot ? 1 : 2;
  d.expect_operands(sources + 1, sources + 1);
  for (size_t i = 1; i <= sources; ++i) {
    d.insn().slot[i] = d.predicate(i);
    if (d.is_negated(i)) d.insn().variant |= static_cast<uint8_t>(1u << (i - 1));
  }
  d.insn().slot[0] = d.destination(0, Type::kPred);
  switch (operation) {
    case Operation::kAnd:
      d.insn().execute = &predicate_logic<Operation::kAnd>;
      break;
    case Operation::kOr:
      d.insn().execute = &predicate_logic<Operation::kOr>;
      break;
    case Operation::kXor:
      d.insn().execute = &predicate_logic<Operation::kXor>;
      break;
    default:
      d.insn().execute = &predicate_logic<Operation::kNot>;
      break;
  }
}

// Bit i of the result is bit (4 a_i + 2 b_i + c_i) of the table.
uint32_t look_up(uint32_t a, uint32_t b, uint32_t c, uint64_t table) {
  uint32_t result = 0;
  for (uint32_t index = 0; index < 8; ++index) {
    const uint32_t match =
        ((index & 4) != 0 ? a : ~a) & ((index & 2) != 0 ? b : ~b) & ((index & 1) != 0 ? c : ~c);
    result |= ((table >> index) & 1) != 0 ? match : 0u;
  }
  return result;
}

// lop3 with a predicate: Insn::imm holds the table, Insn::variant bit 0: .and (else .or), bit 1: q
// negated.
Outcome look_up_with_predicate(Execution& x, const Insn& insn) {
  const uint32_t* a = x.source<uint32_t>(insn.slot[1]);
  const uint32_t* b = x.source<uint32_t>(insn.slot[2]);
  const uint32_t* c = x.source<uint32_t>(insn.slot[3]);
  const uint32_t q = x.predicate(insn.slot[4], (insn.variant & 2) != 0);
  uint32_t nonzero = 0;
  uint32_t value[kWarpSize];
  x.for_lanes([&](int lane) {
    value[lane] = look_up(a[lane], b[lane], c[lane], insn.imm & 0xff);
    nonzero |= static_cast<uint32_t>(value[lane] != 0) << lane;
  });
  if (insn.slot[0].present()) {
    uint32_t* out = x.destination<uint32_t>(insn.slot[0]);
    x.for_lanes([&](int lane) { out[lane] = value[lane]; });
  }
  x.set_predicate({insn.target}, (insn.variant & 1) != 0 ? nonzero & q : nonzero | q);
  return Outcome::kNext;
}

// Shift counts beyond the width are clamped to it.
template <class T>
T shift_left(T a, uint32_t count) {
  return count >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << count);
}
template <class T>
T shift_right(T a, uint32_t count) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(a >> std::min<uint32_t>(count, 8 * sizeof(T) - 1));
  return count >= 8 * sizeof(T) ? T{0} : static_cast<T>(a >> count);
}

template <bool kLeft, bool kClamp>
uint32_t funnel(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t count = kClamp ? std::min(c, 32u) : c & 31;
  const uint64_t both = (uint64_t{b} << 32) | a;
  return kLeft ? static_cast<uint32_t>((both << count) >> 32)
               : static_cast<uint32_t>(both >> count);
}

Handler shift_handler(Type type, bool left) {
  switch (type) {
    case Type::kS16:
      return &each_lane<&shift_right<int16_t>>;
    case Type::kS32:
      return &each_lane<&shift_right<int32_t>>;
    case Type::kS64:
      return &each_lane<&shift_right<int64_t>>;
    case Type::kB16:
    case Type::kU16:
      return left ? &each_lane<&shift_left<uint16_t>> : &each_lane<&shift_right<uint16_t>>;
    case Type::kB32:
    case Type::kU32:
      return left ? &each_lane<&shift_left<uint32_t>> : &each_lane<&shift_right<uint32_t>>;
    default:
      return left ? &each_lane<&shift_left<uint64_t>> : &each_lane<&shift_right<uint64_t>>;
  }
}

}  // namespace

void decode_logic(Decode& d) {
  const std::string& root = d.statement().root;
  const Operation operation = root == "and"   ? Operation::kAnd
                              : root == "or"  ? Operation::kOr
                              : root == "xor" ? Operation::kXor
                              : root == "not" ? Operation::kNot
                                              : Operation::kCnot;
  const Type type = take_type_of(d, {Type::kPred, Type::kB16, Type::kB32, Type::kB64});
  if (type == Type::kPred) return decode_predicate_logic(d, operation);
  if (operation == Operation::kNot || operation == Operation::kCnot) {
    take_operands(d, type, {type});
  } else {
    take_operands(d, type, {type, type});
  }
  d.insn().execute = type == Type::kB16   ? logic_handler<uint16_t>(operation)
                     : type == Type::kB32 ? logic_handler<uint32_t>(operation)
                                          : logic_handler<uint64_t>(operation);
}

void decode_lop3(Decode& d) {
  const int boolean = d.modifiers().take_one_of({"or", "and"});
  take_type_of(d, {Type::kB32});
  d.expect_operands(boolean < 0 ? 5 : 6, boolean < 0 ? 5 : 6);
  for (size_t i = 1; i <= 3; ++i) d.insn().slot[i] = d.source(i, Type::kB32);
  const auto table = d.immediate(4);
  if (!table || *table > 255) d.fail("the look-up table must be an integer constant in 0..255");
  d.insn().imm = *table;
  if (boolean < 0) {
    d.insn().slot[0] = d.destination(0, Type::kB32);
    if (!d.insn().slot[0].present()) d.fail("lop3 needs a destination; '_' is not one here");
    d.insn().execute = &each_lane_imm<&look_up>;
    return;
  }
  const Operand& pair = d.operand(0);
  if (pair.kind != Operand::Kind::kPair) d.fail("the destination must be d|p");
  d.insn().slot[0] = d.destination(pair.parts[0], Type::kB32);
  d.insn().target = d.destination(pair.parts[1], Type::kPred).at;
  d.insn().slot[4] = d.predicate(5);
  d.insn().variant = static_cast<uint8_t>((boolean == 1 ? 1 : 0) | (d.is_negated(5) ? 2 : 0));
  d.insn().execute = &look_up_with_predicate;
}

void decode_shift(Decode& d) {
  const bool left = d.statement().root == "shl";
  const Type type =
      left ? take_type_of(d, {Type::kB16, Type::kB32, Type::kB64})
           : take_type_of(d, {Type::kB16, Type::kB32, Type::kB64, Type::kU16, Type::kU32,
                              Type::kU64, Type::kS16, Type::kS32, Type::kS64});
  take_operands(d, type, {type, Type::kU32});
  d.insn().execute = shift_handler(type, left);
}

void decode_funnel_shift(Decode& d) {
  const int right = d.modifiers().take_one_of({"l", "r"});
  const int wrap = d.modifiers().take_one_of({"clamp", "wrap"});
  if (right < 0 || wrap < 0) d.fail("one of .l and .r and one of .clamp and .wrap must be given");
  take_type_of(d, {Type::kB32});
  take_operands(d, Type::kB32, {Type::kB32, Type::kB32, Type::kU32});
  static constexpr Handler kHandlers[2][2] = {
      {&each_lane<&funnel<true, true>>, &each_lane<&funnel<true, false>>},
      {&each_lane<&funnel<false, true>>, &each_lane<&funnel<false, false>>}};
  d.insn().execute = kHandlers[right][wrap];
}

}  // namespace ptxsim
