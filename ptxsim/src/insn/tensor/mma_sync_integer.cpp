// mma.sync of integers in the shapes that mma_sync.cpp does not have: 8 bits m8n8k16; 4 bits
// m8n8k32, m16n8k32, m16n8k64; single bits m8n8k128, m16n8k128, m16n8k256 (PTX ISA 9.0, "Matrix
// Fragments for mma.m8n8k16" and its neighbours). With e elements in a register, g = lane / 4, t =
// lane % 4 and h = M / 8:
//   A      register j, element i: row g + 8 * (j % h), k = e * t + i + 4 * e * (j / h)
//   B      register j, element i: column g, k = e * t + i + 4 * e * j
//   C, D   register j: row g + 8 * (j / 2), column 2 * t + j % 2
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "insn/tensor/mma_sync.hpp"
#include "machine/execution.hpp"

namespace ptxsim {
namespace {

constexpr IntegerType kTypes[] = {
    {"s8", 8, true}, {"u8", 8, false}, {"s4", 4, true}, {"u4", 4, false}, {"b1", 1, false}};

struct Shape {
  std::string_view name;
  uint32_t bits, m, k;
};
constexpr Shape kShapes[] = {{"m8n8k16", 8, 8, 16},    {"m8n8k32", 4, 8, 32},
                             {"m16n8k32", 4, 16, 32},  {"m16n8k64", 4, 16, 64},
                             {"m8n8k128", 1, 8, 128},  {"m16n8k128", 1, 16, 128},
                             {"m16n8k256", 1, 16, 256}};

struct IntegerDetail final : Detail {
  Shape shape{};
  bool a_signed = false, b_signed = false, saturate = false;
  bool is_xor = false;  // single bits: the count of ones of a ^ b, or of a & b
  std::vector<Slot> d, a, b, c;
};

constexpr uint32_t kMostK = 256;

int64_t value_of(uint32_t word, uint32_t bits, uint32_t index, bool is_signed) {
  const uint32_t at_top = word << (32 - bits - bits * index);
  return is_signed ? int64_t{static_cast<int32_t>(at_top) >> (32 - bits)}
                   : int64_t{at_top >> (32 - bits)};
}

// Calls f(row, k, value); `halves`: groups of 8 rows.
template <class F>
void for_elements(const Execution& x, const std::vector<Slot>& slots, uint32_t bits,
                  uint32_t halves, bool is_signed, F&& f) {
  const uint32_t together = 32 / bits;
  for (uint32_t j = 0; j < slots.size(); ++j)
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      for (uint32_t i = 0; i < together; ++i)
        f(lane / 4 + 8 * (j % halves), together * (lane % 4) + i + 4 * together * (j / halves),
          value_of(x.source<uint32_t>(slots[j])[lane], bits, i, is_signed));
}

uint32_t sum_of(const IntegerDetail& detail, const int64_t* a, const int64_t* b, uint32_t c) {
  int64_t sum = static_cast<int32_t>(c);
  for (uint32_t k = 0; k < detail.shape.k; ++k)
    sum += detail.shape.bits > 1 ? a[k] * b[k] : detail.is_xor ? a[k] ^ b[k] : a[k] & b[k];
  using Limits = std::numeric_limits<int32_t>;
  if (detail.saturate) sum = std::clamp(sum, int64_t{Limits::min()}, int64_t{Limits::max()});
  return static_cast<uint32_t>(sum);
}

Outcome multiply(Execution& x, const Insn& insn) {
  if (x.mask != 0xffffffffu)
    x.fault(fmt::format("mma.sync executed by lanes {:08x}; needs all 32 lanes of a warp (R12)",
                        x.mask));
  const auto& detail = static_cast<const IntegerDetail&>(*insn.detail);
  const Shape& shape = detail.shape;
  int64_t a[kMmaRows][kMostK], b[kMmaColumns][kMostK];
  for_elements(x, detail.a, shape.bits, shape.m / 8, detail.a_signed,
               [&](uint32_t row, uint32_t k, int64_t value) { a[row][k] = value; });
  for_elements(x, detail.b, shape.bits, 1, detail.b_signed,
               [&](uint32_t row, uint32_t k, int64_t value) { b[row][k] = value; });
  for (uint32_t j = 0; j < detail.d.size(); ++j) {
    uint32_t results[kWarpSize];  // D may be C
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      results[lane] = sum_of(detail, a[lane / 4 + 8 * (j / 2)], b[2 * (lane % 4) + j % 2],
                             x.source<uint32_t>(detail.c[j])[lane]);
    if (detail.d[j].present())
      std::copy(results, results + kWarpSize, x.destination<uint32_t>(detail.d[j]));
  }
  Stats& stats = x.machine.stats();
  ++stats.mma_instructions;
  stats.mma_multiply_adds += uint64_t{shape.m} * kMmaColumns * shape.k;
  return Outcome::kNext;
}

}  // namespace

const IntegerType& take_integer_element(Decode& d) {
  for (size_t i = 0; !d.modifiers().at(i).empty(); ++i)
    for (const IntegerType& type : kTypes)
      if (d.modifiers().at(i) == type.name && d.modifiers().take(type.name)) return type;
  d.fail("mma.sync of integers needs the types of A and B: .s8 .u8 .s4 .u4 or .b1");
}

void decode_mma_integer(Decode& d) {
  Modifiers& m = d.modifiers();
  auto* detail = d.make_detail<IntegerDetail>();
  if (m.take_type() != Type::kS32) d.fail("D of mma.sync of integers must be .s32");
  const IntegerType &a = take_integer_element(d), &b = take_integer_element(d);
  if (m.take_type() != Type::kS32) d.fail("C of mma.sync of integers must be .s32");
  const Shape* shape = std::find_if(std::begin(kShapes), std::end(kShapes), [&](const Shape& s) {
    return s.bits == a.bits && s.bits == b.bits && m.take(s.name);
  });
  if (shape == std::end(kShapes))
    d.fail(fmt::format("this shape does not exist for .{} and .{}", a.name, b.name));
  if (!m.take("row") || !m.take("col")) d.fail("mma.sync needs .row.col");
  detail->shape = *shape;
  detail->a_signed = a.is_signed;
  detail->b_signed = b.is_signed;
  if (a.bits == 1) {
    const int operation = m.take_one_of({"and", "xor"});
    if (operation < 0 || !m.take("popc")) d.fail("mma.sync of .b1 needs .xor.popc or .and.popc");
    detail->is_xor = operation == 1;
  } else {
    detail->saturate = m.take("satfinite");
  }
  d.expect_operands(4, 4);
  const uint32_t per_register = 32 / a.bits * kWarpSize;
  detail->d = take_fragment(d, 0, shape->m / 4, Type::kB32);
  detail->a = take_fragment(d, 1, shape->m * shape->k / per_register, Type::kB32);
  detail->b = take_fragment(d, 2, kMmaColumns * shape->k / per_register, Type::kB32);
  detail->c = take_fragment(d, 3, shape->m / 4, Type::kB32);
  d.insn().execute = multiply;
}

}  // namespace ptxsim
