// mma.sync of f64: m8n8k4, m16n8k4, m16n8k8, m16n8k16 (PTX ISA 9.0, "Matrix Fragments for
// mma.m8n8k4 with .f64 floating point type" and its neighbours). With g = lane / 4, t = lane % 4
// and h = M / 8:
//   A      register j: row g + 8 * (j % h), k = t + 4 * (j / h)
//   B      register j: column g, k = t + 4 * j
//   C, D   register j: row g + 8 * (j / 2), column 2 * t + j % 2
// Each sum is a chain of fused multiply-adds that starts with C and goes by rising k.
#include <fmt/format.h>

#include <vector>

#include "insn/tensor/mma_sync.hpp"
#include "machine/execution.hpp"
#include "number/rounded.hpp"

namespace ptxsim {
namespace {

struct F64Detail final : Detail {
  uint32_t m = 8, k = 4;
  Rounding rounding = Rounding::kNearestEven;
  std::vector<Slot> d, a, b, c;
};

Outcome multiply(Execution& x, const Insn& insn) {
  if (x.mask != 0xffffffffu)
    x.fault(fmt::format("mma.sync executed by lanes {:08x}; needs all 32 lanes of a warp (R12)",
                        x.mask));
  const auto& detail = static_cast<const F64Detail&>(*insn.detail);
  const uint32_t halves = detail.m / 8;
  double a[16][16], b[8][16], c[16][8];
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const uint32_t g = lane / 4, t = lane % 4;
    for (uint32_t j = 0; j < detail.a.size(); ++j)
      a[g + 8 * (j % halves)][t + 4 * (j / halves)] = x.source<double>(detail.a[j])[lane];
    for (uint32_t j = 0; j < detail.b.size(); ++j)
      b[g][t + 4 * j] = x.source<double>(detail.b[j])[lane];
    for (uint32_t j = 0; j < detail.c.size(); ++j)
      c[g + 8 * (j / 2)][2 * t + j % 2] = x.source<double>(detail.c[j])[lane];
  }
  for (uint32_t row = 0; row < detail.m; ++row)
    for (uint32_t column = 0; column < kMmaColumns; ++column)
      for (uint32_t k = 0; k < detail.k; ++k)
        c[row][column] = fma_rounded(a[row][k], b[column][k], c[row][column], detail.rounding);
  for (uint32_t j = 0; j < detail.d.size(); ++j)
    for (uint32_t lane = 0; detail.d[j].present() && lane < kWarpSize; ++lane)
      x.destination<double>(detail.d[j])[lane] = c[lane / 4 + 8 * (j / 2)][2 * (lane % 4) + j % 2];
  Stats& stats = x.machine.stats();
  ++stats.mma_instructions;
  stats.mma_multiply_adds += uint64_t{detail.m} * kMmaColumns * detail.k;
  return Outcome::kNext;
}

}  // namespace

void decode_mma_f64(Decode& d) {
  Modifiers& m = d.modifiers();
  auto* detail = d.make_detail<F64Detail>();
  const int shape = m.take_one_of({"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"});
  if (shape < 0) d.fail("mma.sync of .f64 needs .m8n8k4, .m16n8k4, .m16n8k8 or .m16n8k16");
  detail->m = shape == 0 ? 8 : 16;
  detail->k = shape < 2 ? 4 : shape == 2 ? 8 : 16;
  if (!m.take("row") || !m.take("col")) d.fail("mma.sync needs .row.col");
  const int rounding = m.take_one_of({"rn", "rz", "rm", "rp"});
  if (rounding >= 0) detail->rounding = static_cast<Rounding>(rounding);
  for (int i = 0; i < 4; ++i)
    if (m.take_type() != Type::kF64) d.fail("all four types of mma.sync of .f64 must be .f64");
  d.expect_operands(4, 4);
  detail->d = take_fragment(d, 0, detail->m / 4, Type::kF64);
  detail->a = take_fragment(d, 1, detail->m * detail->k / kWarpSize, Type::kF64);
  detail->b = take_fragment(d, 2, detail->k / 4, Type::kF64);
  detail->c = take_fragment(d, 3, detail->m / 4, Type::kF64);
  d.insn().execute = multiply;
}

}  // namespace ptxsim
