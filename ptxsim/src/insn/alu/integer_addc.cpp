// Extended-precision arithmetic: add.cc, addc, sub.cc, subc, mad.cc, madc (PTX ISA 9.0,
// "Extended-Precision Integer Arithmetic Instructions"). CC.CF holds the carry out of an addition,
// and of a subtraction the carry of a + ~b + 1, which is 1 where nothing was borrowed. The manual
// calls it a borrow, and between sub.cc and subc there is no difference; but what ptxas 13.0 makes
// of sub.cc and addc adds this carry (IADD3, then .X with the same predicate), and nvcc's division
// of 128-bit integers is built on that.
#include <type_traits>

#include "insn/alu/arithmetic.hpp"
#include "insn/alu/lanes.hpp"

namespace ptxsim {
namespace {

enum class Chain : uint8_t { kAdd, kSub, kMadLow, kMadHigh };

constexpr uint8_t kReadsCarry = 1, kWritesCarry = 2;  // Insn::variant

template <class T>
struct Sum {
  T value;
  bool carry;
};

template <class T>
Sum<T> add_with(T a, T b, bool carry) {
  const Uint128 sum = static_cast<Uint128>(a) + b + (carry ? 1u : 0u);
  return {static_cast<T>(sum), (sum >> (8 * sizeof(T))) != 0};
}
template <class T>  // T signed or unsigned: only the high part of the product differs
std::make_unsigned_t<T> product_part(std::make_unsigned_t<T> a, std::make_unsigned_t<T> b,
                                     bool high) {
  using U = std::make_unsigned_t<T>;
  // Extended by the sign or by zero; the product modulo 2^128 is that of unsigned numbers.
  const auto extended = [](U value) { return static_cast<Uint128>(static_cast<T>(value)); };
  const Uint128 bits = extended(a) * extended(b);
  return static_cast<U>(high ? bits >> (8 * sizeof(T)) : bits);
}

template <class T, Chain kChain>
Outcome chain(Execution& x, const Insn& insn) {
  using U = std::make_unsigned_t<T>;
  const bool is_mad = kChain == Chain::kMadLow || kChain == Chain::kMadHigh;
  const U* a = x.source<U>(insn.slot[1]);
  const U* b = x.source<U>(insn.slot[2]);
  const U* c = is_mad ? x.source<U>(insn.slot[3]) : nullptr;
  U* out = x.destination<U>(insn.slot[0]);
  uint32_t carries = x.warp.carry;
  x.for_lanes([&](int lane) {
    const bool reads = (insn.variant & kReadsCarry) != 0;
    const bool in = reads ? ((carries >> lane) & 1) != 0 : kChain == Chain::kSub;
    Sum<U> sum;
    if constexpr (kChain == Chain::kAdd) {
      sum = add_with<U>(a[lane], b[lane], in);
    } else if constexpr (kChain == Chain::kSub) {
      sum = add_with<U>(a[lane], static_cast<U>(~b[lane]), in);
    } else {
      sum = add_with<U>(product_part<T>(a[lane], b[lane], kChain == Chain::kMadHigh), c[lane], in);
    }
    out[lane] = sum.value;
    carries = (carries & ~(1u << lane)) | (static_cast<uint32_t>(sum.carry) << lane);
  });
  if ((insn.variant & kWritesCarry) != 0) x.warp.carry = carries;
  return Outcome::kNext;
}

template <class T>
Handler chain_handler(Chain which) {
  switch (which) {
    case Chain::kAdd:
      return &chain<T, Chain::kAdd>;
    case Chain::kSub:
      return &chain<T, Chain::kSub>;
    case Chain::kMadLow:
      return &chain<T, Chain::kMadLow>;
    default:
      return &chain<T, Chain::kMadHigh>;
  }
}

}  // namespace

void decode_carry(Decode& d) {
  const std::string& root = d.statement().root;
  const bool reads = root.back() == 'c';  // addc, subc, madc
  const bool writes = d.modifiers().take("cc");
  Chain which = root.starts_with("add") ? Chain::kAdd : Chain::kSub;
  if (root.starts_with("mad")) {
    const int high = d.modifiers().take_one_of({"lo", "hi"});
    if (high < 0) d.fail("one of .lo and .hi must be given");
    which = high == 1 ? Chain::kMadHigh : Chain::kMadLow;
  }
  const Type type = take_type_of(d, {Type::kU32, Type::kS32, Type::kU64, Type::kS64});
  if (root.starts_with("mad")) {
    take_operands(d, type, {type, type, type});
  } else {
    take_operands(d, type, {type, type});
  }
  d.insn().variant = static_cast<uint8_t>((reads ? kReadsCarry : 0) | (writes ? kWritesCarry : 0));
  switch (type) {
    case Type::kU32:
      d.insn().execute = chain_handler<uint32_t>(which);
      break;
    case Type::kS32:
      d.insn().execute = chain_handler<int32_t>(which);
      break;
    case Type::kU64:
      d.insn().execute = chain_handler<uint64_t>(which);
      break;
    default:
      d.insn().execute = chain_handler<int64_t>(which);
      break;
  }
}

}  // namespace ptxsim
