// redux.sync (PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: redux.sync").
#include <bit>

#include "insn/alu/shfl_vote_match.hpp"
#include "machine/execution.hpp"
#include "number/float_reduction.hpp"

namespace ptxsim {
namespace {

template <class T, class F>
Outcome reduce(Execution& x, const Insn& insn, F&& combine) {
  const T* a = x.source<T>(insn.slot[1]);
  T result = a[x.first_lane()];
  for (uint32_t left = x.mask & (x.mask - 1); left != 0; left &= left - 1)
    result = combine(result, a[std::countr_zero(left)]);
  T* d = x.destination<T>(insn.slot[0]);
  x.for_lanes([&](int lane) { d[lane] = result; });
  return Outcome::kNext;
}

enum class ReduceOp : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor };

template <class T>
Outcome reduce_integer(Execution& x, const Insn& insn) {
  switch (static_cast<ReduceOp>(insn.variant)) {
    case ReduceOp::kAdd:
      return reduce<uint32_t>(x, insn, [](uint32_t p, uint32_t q) { return p + q; });
    case ReduceOp::kMin:
      return reduce<T>(x, insn, [](T p, T q) { return p < q ? p : q; });
    case ReduceOp::kMax:
      return reduce<T>(x, insn, [](T p, T q) { return p > q ? p : q; });
    case ReduceOp::kAnd:
      return reduce<uint32_t>(x, insn, [](uint32_t p, uint32_t q) { return p & q; });
    case ReduceOp::kOr:
      return reduce<uint32_t>(x, insn, [](uint32_t p, uint32_t q) { return p | q; });
    default:
      return reduce<uint32_t>(x, insn, [](uint32_t p, uint32_t q) { return p ^ q; });
  }
}

constexpr uint8_t kReduceAbs = 1, kReduceNan = 2;  // Insn::family of redux.sync.f32

Outcome reduce_float(Execution& x, const Insn& insn) {
  FloatReduction reduction({.is_min = static_cast<ReduceOp>(insn.variant) == ReduceOp::kMin,
                            .absolute = (insn.family & kReduceAbs) != 0,
                            .propagates_nan = (insn.family & kReduceNan) != 0});
  const uint32_t* a = x.source<uint32_t>(insn.slot[1]);
  x.for_lanes([&](int lane) { reduction.add(a[lane]); });
  uint32_t* d = x.destination<uint32_t>(insn.slot[0]);
  x.for_lanes([&](int lane) { d[lane] = reduction.result(); });
  return Outcome::kNext;
}

}  // namespace

void decode_redux(Decode& d) {
  d.expect_operands(3, 3);
  take_sync(d, 2);
  auto& m = d.modifiers();
  const int op = m.take_one_of({"add", "min", "max", "and", "or", "xor"});
  const int type = m.take_one_of({"u32", "s32", "b32", "f32"});
  if (op < 0 || type < 0) d.fail("redux needs an operation and .u32, .s32, .b32 or .f32");
  const auto which = static_cast<ReduceOp>(op);
  const bool is_bitwise = which >= ReduceOp::kAnd;
  if ((type == 2) != is_bitwise || (type == 3 && which == ReduceOp::kAdd))
    d.fail(
        "redux has .add .min .max for .u32 and .s32, .and .or .xor for .b32, .min .max for .f32");
  d.insn().slot[0] = d.destination(0, Type::kB32);
  require_result(d);
  d.insn().slot[1] = d.source(1, type == 3 ? Type::kF32 : Type::kB32);
  d.insn().variant = static_cast<uint8_t>(op);
  if (type == 3) {
    d.insn().family =
        static_cast<uint8_t>((m.take("abs") ? kReduceAbs : 0) | (m.take("NaN") ? kReduceNan : 0));
    d.insn().execute = reduce_float;
  } else {
    d.insn().execute = type == 1 ? reduce_integer<int32_t> : reduce_integer<uint32_t>;
  }
}

}  // namespace ptxsim
