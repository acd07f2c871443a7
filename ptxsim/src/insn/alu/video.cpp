// Video instructions (PTX ISA 9.0, "Scalar Video Instructions", "SIMD Video Instructions"): one
// operation on a part of each of two registers, or on two halves or four bytes chosen from both,
// then one more on the result and c. Elements of SIMD instructions are as the manual says. Hopper
// has no scalar ones: ptxas writes them out, and where that differs from the manual (results beyond
// 32 bits, .sat, the upper half as a destination, vmad) this is what an H100 gives, found over 8
// 320 forms and 96 inputs each.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "insn/alu/arithmetic.hpp"
#include "insn/alu/lanes.hpp"
#include "number/sign.hpp"

namespace ptxsim {
namespace {

enum class Op : uint8_t { kAdd, kSub, kAbsDiff, kMin, kMax, kAverage, kShl, kShr, kSet, kMad };
enum class Second : uint8_t { kNone, kAdd, kMin, kMax };
enum class Compare : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };

// Bits of a register; sign- or zero-extended.
struct Part {
  uint8_t shift = 0, bits = 32;
  bool is_signed = false;
};

struct VideoDetail : Detail {
  Op op = Op::kAdd;
  bool result_is_signed = false;  // .dtype
  bool compares_signed = false;   // with c, for .min and .max
  bool saturates = false;
  Second second = Second::kNone;
  Compare compare = Compare::kEq;
  bool wraps = false;            // vshl, vshr
  bool negates_product = false;  // vmad, as the next three
  bool negates_c = false;
  bool adds_one = false;
  uint8_t scale = 0;
  // Scalar instructions have one element; `to` is where it goes. SIMD instructions: elements of
  // `to.bits`, the lowest first; those that the mask lacks are taken from c.
  uint8_t elements = 1;
  bool merges = false;
  uint8_t mask = 1;
  std::array<Part, 4> a, b;
  std::array<uint8_t, 4> a_from_b{}, b_from_b{};  // which of the two registers
  std::array<Part, 4> to;
};

using Wide = Int128;

Wide extract(uint32_t word, Part part) {
  const uint32_t bits = word >> part.shift & static_cast<uint32_t>((uint64_t{1} << part.bits) - 1);
  if (!part.is_signed) return bits;
  return sign_extended(bits, part.bits);
}

Wide clamp_to(Wide value, unsigned bits, bool is_signed) {
  const Wide one = 1;
  const Wide least = is_signed ? -(one << (bits - 1)) : 0;
  const Wide most = is_signed ? (one << (bits - 1)) - 1 : (one << bits) - 1;
  return std::clamp(value, least, most);
}

bool holds(Compare compare, Wide a, Wide b) {
  switch (compare) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return a != b;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    case Compare::kGe:
      return a >= b;
  }
  return false;
}

Wide shift_amount(const VideoDetail& v, Wide b) { return v.wraps ? b & 31 : std::min<Wide>(b, 32); }

// Half of the sum, rounded away from 0.
Wide average(Wide sum) { return (sum >= 0 ? sum + 1 : sum) >> 1; }

// A number of 33 bits, shifted by up to 32: the lowest `bits` of the result, as a signed number.
Wide shifted_left(Wide a, Wide amount, unsigned bits) {
  return sign_extended(static_cast<uint64_t>(a << amount), bits);
}

Wide operate(const VideoDetail& v, Wide a, Wide b) {
  switch (v.op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kAbsDiff:
      return a > b ? a - b : b - a;
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kAverage:
      return average(a + b);
    case Op::kShl:
      return shifted_left(a, shift_amount(v, b), v.saturates ? 34 : 64);
    case Op::kShr:
      return a >> shift_amount(v, b);
    case Op::kSet:
      return holds(v.compare, a, b);
    case Op::kMad:
      break;  // multiply_add
  }
  return 0;
}

uint32_t low_word(Wide value) { return static_cast<uint32_t>(value); }

Wide as_signed(uint32_t word) { return static_cast<int32_t>(word); }

// vmad multiplies registers that hold the extended parts, as signed numbers, and adds c as one.
uint32_t multiply_add(const VideoDetail& v, Wide a, Wide b, uint32_t c) {
  const Wide product = as_signed(low_word(a)) * as_signed(low_word(b));
  const Wide sum = (v.negates_product ? -product : product) +
                   (v.negates_c ? -as_signed(c) : as_signed(c)) + (v.adds_one ? 1 : 0);
  const Wide scaled = sum >> v.scale;
  if (!v.saturates) return low_word(scaled);
  // Scaled sums below 0 are compared as unsigned numbers of 64 bits.
  if (!v.result_is_signed && scaled < 0) return v.scale == 0 ? 0 : 0xffffffffu;
  return low_word(clamp_to(scaled, 32, v.result_is_signed));
}

uint32_t merged(uint32_t into, Part part, Wide value) {
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << part.bits) - 1);
  return (into & ~(mask << part.shift)) | (low_word(value) & mask) << part.shift;
}

bool is_shift(const VideoDetail& v) { return v.op == Op::kShl || v.op == Op::kShr; }

// .sat of a scalar instruction. For a part of the destination a value is taken as an unsigned
// number of 64 bits, and a shift's is limited to the register. Among unsigned results of 32 bits
// only those of vshl have an upper limit.
Wide saturated_scalar(const VideoDetail& v, Wide value) {
  const Wide unsigned_64 = static_cast<uint64_t>(value);
  if (v.merges && !is_shift(v)) return clamp_to(unsigned_64, v.to[0].bits, v.result_is_signed);
  if (v.result_is_signed || v.op == Op::kShl) return clamp_to(value, 32, v.result_is_signed);
  return std::max<Wide>(value, 0);
}

// Whether an unsigned result is compared with c as one whose top bit, a sign then, makes it the
// larger one.
bool may_be_negative(const VideoDetail& v) {
  const bool a = v.a[0].is_signed, b = v.b[0].is_signed;
  switch (v.op) {
    case Op::kAdd:
    case Op::kSub:
      return true;
    case Op::kMin:
      return a || b;
    case Op::kMax:
      return a && b;
    case Op::kShl:
      return v.saturates;
    case Op::kShr:
      return v.saturates || a;
    default:
      return false;
  }
}

bool is_less_than_c(const VideoDetail& v, Wide value, uint32_t c) {
  const uint32_t word = low_word(value);
  if (v.compares_signed)
    return (v.op == Op::kAdd || v.op == Op::kSub ? as_signed(word) : value) < as_signed(c);
  if (may_be_negative(v)) return word >> 31 == 0 && word <= c;
  return static_cast<uint64_t>(value) < c;
}

uint32_t compute_scalar(const VideoDetail& v, uint32_t a, uint32_t b, uint32_t c) {
  const Wide left = extract(a, v.a[0]), right = extract(b, v.b[0]);
  if (v.op == Op::kMad) return multiply_add(v, left, right, c);
  Wide value = operate(v, left, right);
  if (v.saturates) value = saturated_scalar(v, value);
  if (v.merges) {
    // The upper half of a destination takes the value's upper half.
    if (v.to[0].bits == 16 && v.to[0].shift == 16) value >>= 16;
    return merged(c, v.to[0], value);
  }
  if (v.second == Second::kNone) return low_word(value);
  if (v.second == Second::kAdd) return low_word(value) + c;
  return is_less_than_c(v, value, c) == (v.second == Second::kMin) ? low_word(value) : c;
}

uint32_t compute_elements(const VideoDetail& v, uint32_t a, uint32_t b, uint32_t c) {
  const std::array<uint32_t, 2> words{a, b};
  uint32_t result = c;
  for (unsigned i = 0; i < v.elements; ++i) {
    if ((v.mask >> i & 1) == 0) continue;
    Wide value =
        operate(v, extract(words[v.a_from_b[i]], v.a[i]), extract(words[v.b_from_b[i]], v.b[i]));
    if (v.saturates) value = clamp_to(value, v.to[i].bits, v.result_is_signed);
    if (v.second == Second::kAdd)
      result += low_word(value);
    else
      result = merged(result, v.to[i], value);
  }
  return result;
}

Outcome execute(Execution& x, const Insn& insn) {
  const auto& v = static_cast<const VideoDetail&>(*insn.detail);
  const auto* a = x.source<uint32_t>(insn.slot[1]);
  const auto* b = x.source<uint32_t>(insn.slot[2]);
  const auto* c = insn.slot[3].present() ? x.source<uint32_t>(insn.slot[3]) : nullptr;
  auto* d = x.destination<uint32_t>(insn.slot[0]);
  x.for_lanes([&](int lane) {
    const auto compute = v.elements == 1 ? compute_scalar : compute_elements;
    d[lane] = compute(v, a[lane], b[lane], c == nullptr ? 0 : c[lane]);
  });
  return Outcome::kNext;
}

constexpr struct {
  std::string_view name;
  Op op;
  bool scalar, simd;
} kOps[] = {{"vadd", Op::kAdd, true, true},         {"vsub", Op::kSub, true, true},
            {"vabsdiff", Op::kAbsDiff, true, true}, {"vmin", Op::kMin, true, true},
            {"vmax", Op::kMax, true, true},         {"vavrg", Op::kAverage, false, true},
            {"vshl", Op::kShl, true, false},        {"vshr", Op::kShr, true, false},
            {"vset", Op::kSet, true, true},         {"vmad", Op::kMad, true, false}};

// .b0 .. .b3, .h0, .h1; none: the whole register.
Part part_of(Decode& d, const Operand& operand, bool is_signed) {
  const std::string& name = operand.selector;
  if (name.empty()) return {0, 32, is_signed};
  const bool byte = name[0] == 'b';
  const int index = name.size() == 2 ? name[1] - '0' : -1;
  if ((!byte && name[0] != 'h') || index < 0 || index > (byte ? 3 : 1))
    d.fail(fmt::format("selector .{}; .b0 to .b3, .h0 or .h1", name));
  const auto bits = static_cast<uint8_t>(byte ? 8 : 16);
  return {static_cast<uint8_t>(bits * index), bits, is_signed};
}

// The digits of .h10 or .b3210, the last first; `least` of them at least.
std::vector<uint8_t> digits_of(Decode& d, const std::string& name, const VideoDetail& v,
                               size_t least) {
  const char letter = v.elements == 2 ? 'h' : 'b';
  std::vector<uint8_t> digits;
  for (size_t i = name.size(); i > 1; --i)
    digits.push_back(static_cast<uint8_t>(name[i - 1] - '0'));
  const bool known =
      !name.empty() && name[0] == letter && digits.size() >= least && digits.size() <= v.elements &&
      std::ranges::all_of(digits, [&](uint8_t digit) { return digit < 2 * v.elements; });
  if (!known)
    d.fail(fmt::format("selector .{}; .{} and {} digits below {}", name, letter, v.elements,
                       2 * v.elements));
  return digits;
}

void take_elements(Decode& d, VideoDetail& v, const Operand& operand, bool is_signed, bool is_a) {
  const auto bits = static_cast<uint8_t>(32 / v.elements);
  std::vector<uint8_t> digits;
  if (operand.selector.empty())
    for (unsigned i = 0; i < v.elements; ++i)
      digits.push_back(static_cast<uint8_t>(is_a ? i : i + v.elements));
  else
    digits = digits_of(d, operand.selector, v, v.elements);
  for (unsigned i = 0; i < v.elements; ++i) {
    (is_a ? v.a_from_b : v.b_from_b)[i] = digits[i] / v.elements;
    (is_a ? v.a : v.b)[i] = {static_cast<uint8_t>(digits[i] % v.elements * bits), bits, is_signed};
  }
}

void take_mask(Decode& d, VideoDetail& v) {
  const auto bits = static_cast<uint8_t>(32 / v.elements);
  for (unsigned i = 0; i < v.elements; ++i) v.to[i] = {static_cast<uint8_t>(i * bits), bits, false};
  v.merges = v.second == Second::kNone;
  v.mask = static_cast<uint8_t>((1u << v.elements) - 1);
  if (d.operand(0).selector.empty()) return;
  v.mask = 0;
  const std::vector<uint8_t> digits = digits_of(d, d.operand(0).selector, v, 1);
  for (size_t i = 0; i < digits.size(); ++i) {
    if (digits[i] >= v.elements || (i > 0 && digits[i] <= digits[i - 1]))
      d.fail(fmt::format("mask .{}; digits below {}, each once, the largest first",
                         d.operand(0).selector, v.elements));
    v.mask = static_cast<uint8_t>(v.mask | 1u << digits[i]);
  }
}

bool take_sign(Decode& d) { return take_type_of(d, {Type::kU32, Type::kS32}) == Type::kS32; }

void take_multiply_add(Decode& d, VideoDetail& v, bool a_is_signed, bool b_is_signed) {
  v.adds_one = d.modifiers().take("po");
  const int scale = d.modifiers().take_one_of({"shr7", "shr15"});
  v.scale = scale < 0 ? 0 : scale == 0 ? 7 : 15;
  v.negates_product = d.is_negated(1) != d.is_negated(2);
  v.negates_c = d.is_negated(3);
  if (v.adds_one && (d.is_negated(1) || d.is_negated(2) || v.negates_c))
    d.fail(".po with a negated operand");
  if (v.negates_product && v.negates_c) d.fail("the product or c may be negated, not both");
  v.result_is_signed = a_is_signed || b_is_signed || v.negates_product || v.negates_c;
}

// Which of the operands' types and modifiers an operation has.
void take_modifiers(Decode& d, VideoDetail& v, bool& a_is_signed, bool& b_is_signed) {
  Modifiers& m = d.modifiers();
  if (v.op != Op::kSet) v.result_is_signed = take_sign(d);
  a_is_signed = take_sign(d);
  b_is_signed = take_sign(d);
  if (v.op != Op::kSet) v.saturates = m.take("sat");
  if (v.op == Op::kSet) {
    const int compare = m.take_one_of({"eq", "ne", "lt", "le", "gt", "ge"});
    if (compare < 0) d.fail("needs a comparison: .eq .ne .lt .le .gt .ge");
    v.compare = static_cast<Compare>(compare);
  }
  if (v.op == Op::kShl || v.op == Op::kShr) {
    const int mode = m.take_one_of({"clamp", "wrap"});
    if (mode < 0 || b_is_signed)
      d.fail("a shift needs .clamp or .wrap, and an amount of type .u32");
    v.wraps = mode == 1;
  }
  v.compares_signed = v.op == Op::kSet ? a_is_signed : v.result_is_signed;
  if (v.op == Op::kMad) return take_multiply_add(d, v, a_is_signed, b_is_signed);
  const int second = m.take_one_of({"add", "min", "max"});
  if (second >= 0) v.second = static_cast<Second>(second + 1);
}

void decode_scalar(Decode& d, VideoDetail& v) {
  bool a_is_signed = false, b_is_signed = false;
  take_modifiers(d, v, a_is_signed, b_is_signed);
  v.a[0] = part_of(d, d.operand(1), a_is_signed);
  v.b[0] = part_of(d, d.operand(2), b_is_signed);
  v.b_from_b[0] = 1;
  v.to[0] = part_of(d, d.operand(0), false);
  v.merges = !d.operand(0).selector.empty();
  if (v.merges && v.second != Second::kNone)
    d.fail("a part of the destination, and a second operation: one of them");
  if (v.merges && v.op == Op::kMad) d.fail("vmad writes a whole register");
  const bool needs_c = v.merges || v.second != Second::kNone || v.op == Op::kMad;
  const bool has_c = needs_c || d.num_operands() == 4;  // ptxas takes one that nothing reads
  if (has_c)
    take_operands(d, Type::kU32, {Type::kU32, Type::kU32, Type::kU32});
  else
    take_operands(d, Type::kU32, {Type::kU32, Type::kU32});
}

void decode_simd(Decode& d, VideoDetail& v) {
  bool a_is_signed = false, b_is_signed = false;
  d.expect_operands(4, 4);
  take_modifiers(d, v, a_is_signed, b_is_signed);
  if (v.second > Second::kAdd) d.fail("the second operation on elements is .add");
  if (v.saturates && v.second == Second::kAdd) d.fail(".sat with .add");
  take_elements(d, v, d.operand(1), a_is_signed, true);
  take_elements(d, v, d.operand(2), b_is_signed, false);
  take_mask(d, v);
  take_operands(d, Type::kU32, {Type::kU32, Type::kU32, Type::kU32});
}

}  // namespace

void decode_video(Decode& d) {
  auto* v = d.make_detail<VideoDetail>();
  std::string_view name = d.statement().root;
  const bool simd = name.back() == '2' || name.back() == '4';
  if (simd) {
    v->elements = static_cast<uint8_t>(name.back() - '0');
    name.remove_suffix(1);
  }
  const auto* op =
      std::ranges::find_if(kOps, [&](const auto& known) { return known.name == name; });
  v->op = op->op;
  if (simd)
    decode_simd(d, *v);
  else
    decode_scalar(d, *v);
  if (!d.operand(d.num_operands() - 1).selector.empty() && d.num_operands() == 4)
    d.fail("c has no selector");
  d.insn().execute = execute;
}

}  // namespace ptxsim
