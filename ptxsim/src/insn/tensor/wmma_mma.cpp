// wmma.mma: D = A * B + C. Each sum is computed as mma.sync of the same K computes it; f64 as a
// chain of fused multiply-adds by rising k.
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "insn/tensor/wmma.hpp"
#include "number/rounded.hpp"

namespace ptxsim {
namespace {

struct WmmaDetail final : Detail {
  WmmaShape shape{};
  WmmaFragment d, a, b, c;
  bool saturate = false;
  Rounding rounding = Rounding::kNearestEven;  // f64
};

// Calls f(row, column, bits) for all elements of a matrix.
template <class F>
void for_elements(Execution& x, const WmmaFragment& fragment, F&& f) {
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    for (uint32_t i = 0; i < fragment.per_lane(); ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, fragment.place(x.registers, lane, i), fragment.element_bytes());
      const auto at = fragment.element(lane, i);
      f(at.row, at.column, bits);
    }
}

using Cells = std::vector<uint64_t>;  // by rows

void write(Execution& x, const WmmaFragment& fragment, const Cells& cells) {
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    for (uint32_t i = 0; i < fragment.per_lane(); ++i) {
      const auto at = fragment.element(lane, i);
      std::memcpy(fragment.place(x.registers, lane, i),
                  &cells[at.row * fragment.columns + at.column], fragment.element_bytes());
    }
}

Element element_of(Type type) {
  return type == Type::kF16 ? Element::kF16 : type == Type::kBf16 ? Element::kBf16 : Element::kTf32;
}

void multiply_dense(Execution& x, const WmmaDetail& detail, Cells& cells) {
  DenseOperand a(detail.shape.m, detail.shape.k, false), b(detail.shape.n, detail.shape.k, true);
  for_elements(x, detail.a, [&](uint32_t row, uint32_t k, uint64_t bits) {
    a.set(row, k, element_of(detail.a.type), static_cast<uint32_t>(bits));
  });
  for_elements(x, detail.b, [&](uint32_t k, uint32_t column, uint64_t bits) {
    b.set(column, k, element_of(detail.b.type), static_cast<uint32_t>(bits));
  });
  DenseRules rules;
  rules.exact = x.machine.options().mma == MmaMode::kExact;
  const bool c_is_half = detail.c.type == Type::kF16, d_is_half = detail.d.type == Type::kF16;
  if (c_is_half && d_is_half) rules.accumulator = Accumulator::kF16;
  std::vector<uint32_t> line(detail.shape.n);
  for (uint32_t row = 0; row < detail.shape.m; ++row) {
    uint64_t* of_row = &cells[size_t{row} * detail.shape.n];
    for (uint32_t n = 0; n < detail.shape.n; ++n)
      line[n] = c_is_half && !d_is_half
                    ? std::bit_cast<uint32_t>(f16_to_float(static_cast<uint16_t>(of_row[n])))
                    : static_cast<uint32_t>(of_row[n]);
    dense_row(a, row, b, rules, true, line.data());
    for (uint32_t n = 0; n < detail.shape.n; ++n)
      of_row[n] = d_is_half && !c_is_half ? float_to_f16(std::bit_cast<float>(line[n])) : line[n];
  }
}

void multiply_integer(Execution& x, const WmmaDetail& detail, Cells& cells) {
  IntegerOperand a(detail.shape.m, detail.shape.k, false), b(detail.shape.n, detail.shape.k, true);
  for_elements(x, detail.a, [&](uint32_t row, uint32_t k, uint64_t bits) {
    a.set(row, k, detail.a.type == Type::kS8, static_cast<uint8_t>(bits));
  });
  for_elements(x, detail.b, [&](uint32_t k, uint32_t column, uint64_t bits) {
    b.set(column, k, detail.b.type == Type::kS8, static_cast<uint8_t>(bits));
  });
  std::vector<uint32_t> line(detail.shape.n);
  for (uint32_t row = 0; row < detail.shape.m; ++row) {
    uint64_t* of_row = &cells[size_t{row} * detail.shape.n];
    for (uint32_t n = 0; n < detail.shape.n; ++n) line[n] = static_cast<uint32_t>(of_row[n]);
    integer_row(a, row, b, detail.saturate, true, line.data());
    for (uint32_t n = 0; n < detail.shape.n; ++n) of_row[n] = line[n];
  }
}

void multiply_f64(Execution& x, const WmmaDetail& detail, Cells& cells) {
  std::vector<double> a(size_t{detail.shape.m} * detail.shape.k), b(a.size());
  for_elements(x, detail.a, [&](uint32_t row, uint32_t k, uint64_t bits) {
    a[row * detail.shape.k + k] = std::bit_cast<double>(bits);
  });
  for_elements(x, detail.b, [&](uint32_t k, uint32_t column, uint64_t bits) {
    b[column * detail.shape.k + k] = std::bit_cast<double>(bits);
  });
  for (uint32_t row = 0; row < detail.shape.m; ++row)
    for (uint32_t n = 0; n < detail.shape.n; ++n) {
      uint64_t& cell = cells[size_t{row} * detail.shape.n + n];
      double sum = std::bit_cast<double>(cell);
      for (uint32_t k = 0; k < detail.shape.k; ++k)
        sum = fma_rounded(a[row * detail.shape.k + k], b[n * detail.shape.k + k], sum,
                          detail.rounding);
      cell = std::bit_cast<uint64_t>(sum);
    }
}

Outcome multiply(Execution& x, const Insn& insn) {
  if (x.mask != 0xffffffffu)
    x.fault(
        fmt::format("wmma executed by lanes {:08x}; needs all 32 lanes of a warp (R12)", x.mask));
  const auto& detail = static_cast<const WmmaDetail&>(*insn.detail);
  Cells cells(size_t{detail.shape.m} * detail.shape.n);
  for_elements(x, detail.c, [&](uint32_t row, uint32_t column, uint64_t bits) {
    cells[size_t{row} * detail.shape.n + column] = bits;
  });
  if (detail.d.type == Type::kF64) {
    multiply_f64(x, detail, cells);
  } else if (detail.d.type == Type::kS32) {
    multiply_integer(x, detail, cells);
  } else {
    multiply_dense(x, detail, cells);
  }
  write(x, detail.d, cells);
  Stats& stats = x.machine.stats();
  ++stats.mma_instructions;
  stats.mma_multiply_adds += uint64_t{detail.shape.m} * detail.shape.n * detail.shape.k;
  return Outcome::kNext;
}

struct Types {
  Type d, a, b, c;
};

// .dtype.ctype with f16 factors, or all four.
Types take_types(Decode& d) {
  Modifiers& m = d.modifiers();
  const Type first = m.take_type(), second = m.take_type(), third = m.take_type();
  if (third == Type::kNone) {
    const auto is_float = [](Type t) { return t == Type::kF16 || t == Type::kF32; };
    if (!is_float(first) || !is_float(second)) d.fail("D and C must be .f16 or .f32");
    return {first, Type::kF16, Type::kF16, second};
  }
  const Types types{first, second, third, m.take_type()};
  const bool is_integer = types.a == Type::kS8 || types.a == Type::kU8;
  const bool b_fits =
      types.b == types.a || (is_integer && (types.b == Type::kS8 || types.b == Type::kU8));
  const Type sum = is_integer                                         ? Type::kS32
                   : types.a == Type::kF64                            ? Type::kF64
                   : types.a == Type::kBf16 || types.a == Type::kTf32 ? Type::kF32
                                                                      : Type::kNone;
  if (!b_fits || sum == Type::kNone || types.d != sum || types.c != sum)
    d.fail(fmt::format("wmma.mma of .{}.{}.{}.{} is not known", name_of(types.d), name_of(types.a),
                       name_of(types.b), name_of(types.c)));
  return types;
}

}  // namespace

void decode_wmma_mma(Decode& d) {
  auto* detail = d.make_detail<WmmaDetail>();
  detail->shape = take_wmma_shape(d);
  const bool a_by_columns = take_by_columns(d), b_by_columns = take_by_columns(d);
  const int rounding = d.modifiers().take_one_of({"rn", "rz", "rm", "rp"});
  const Types types = take_types(d);
  if (rounding >= 0 && types.d != Type::kF64) d.fail("a rounding is known for .f64 alone");
  if (rounding >= 0) detail->rounding = static_cast<Rounding>(rounding);
  if (types.d == Type::kS32) detail->saturate = d.modifiers().take("satfinite");
  d.expect_operands(4, 4);
  const auto fragment = [&](size_t index, WmmaMatrix matrix, Type type, bool by_columns) {
    return take_wmma_fragment(d, index, matrix, detail->shape, type, by_columns, index == 0);
  };
  detail->d = fragment(0, WmmaMatrix::kAccumulator, types.d, false);
  detail->a = fragment(1, WmmaMatrix::kA, types.a, a_by_columns);
  detail->b = fragment(2, WmmaMatrix::kB, types.b, b_by_columns);
  detail->c = fragment(3, WmmaMatrix::kAccumulator, types.c, false);
  d.insn().execute = multiply;
}

}  // namespace ptxsim
