// Every instruction set against the oracle: exact arithmetic with ==, random values inside the
// derived bound, over edge shapes, layouts, types, groupings; all with poisoned padding, output and
// workspace.
#include <gtest/gtest.h>

#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/inputs.hpp"
#include "support/sanitizers.hpp"
#include "unit/cpu/run.hpp"

namespace dualgemm::test {
namespace {

class Gemm : public ::testing::TestWithParam<Isa> {};

std::string describe(const Problem& p, const RunOptions& o) {
  return "m=" + std::to_string(p.m) + " n=" + std::to_string(p.n) + " k=" + std::to_string(p.k) +
         " l=" + std::to_string(p.l) + " a=" + name_of(p.a.type) + " d=" + name_of(p.d.type) +
         " a_scales=" + name_of(p.a.scale_layout) + " w_scales=" + name_of(p.gate.scale_layout) +
         " act=" + name_of(p.act.kind) + " bias=" + name_of(p.bias) +
         " grouping=" + name_of(p.grouping) + " strategy=" + name_of(o.strategy) +
         " isa=" + name_of(o.isa) + " threads=" + std::to_string(o.threads) +
         (o.prepared ? " prepared" : "");
}

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Ragged strides, both layouts, every type, every activation.
Problem random_problem(Rng& rng, int64_t m, int64_t n, int64_t k) {
  Problem p{.m = m, .n = n, .k = k, .l = rng.chance(0.3) ? rng.integer(2, 3) : 1};
  constexpr DataType kTypes[] = {DataType::kE2M1, DataType::kF16, DataType::kBF16, DataType::kF32};
  p.a.type = rng.chance(0.6) ? DataType::kE2M1 : kTypes[rng.integer(1, 3)];
  p.d.type = kTypes[rng.integer(n % 16 == 0 ? 0 : 1, 3)];
  for (Matrix* matrix : {&p.a, &p.gate, &p.up, &p.d}) {
    const int64_t cols = matrix == &p.d ? n : k;
    const bool scaled = matrix->type == DataType::kE2M1;
    if (rng.chance(0.4)) matrix->ld = round_up(cols + rng.integer(0, 40), 2);
    if (!scaled) continue;
    if (rng.chance(0.5)) {
      matrix->scale_layout = ScaleLayout::kSwizzled128x4;
    } else if (rng.chance(0.4)) {
      matrix->scale_ld = cols / 16 + rng.integer(0, 9);
    }
  }
  p.act = test::any_activation(rng);
  p.bias = any_bias(rng);
  return p;
}

void fill_optional(RandomCase& c, Rng& rng) {
  const Problem& p = c.problem;
  const int64_t rows = p.grouping == Grouping::kContiguous ? p.m : p.l * p.m;
  if (rng.chance(0.3)) {
    c.a_row_scale.resize(static_cast<size_t>(rows));
    for (float& s : c.a_row_scale) s = rng.uniform(0.5f, 2.0f);
  }
  if (rng.chance(0.3)) {
    c.alpha_gate_per_batch.resize(static_cast<size_t>(p.l));
    c.alpha_up_per_batch.resize(static_cast<size_t>(p.l));
    for (float& s : c.alpha_gate_per_batch) s = rng.uniform(0.5f, 2.0f);
    for (float& s : c.alpha_up_per_batch) s = rng.uniform(-2.0f, 2.0f);
  }
  c.d_global_scale = 0.25f;
}

TEST_P(Gemm, RandomShapesStayInsideTheBound) {
  Rng rng;
  const int64_t interesting[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 70};
  for (int trial = 0; trial < (kSanitized ? 50 : 150); ++trial) {
    const int64_t m = interesting[rng.integer(0, 17)];
    const int64_t n = rng.chance(0.4) ? 16 * rng.integer(1, 4) : rng.integer(1, 50);
    const int64_t k = 16 * (rng.chance(0.5) ? rng.integer(1, 12) : rng.integer(1, 70));
    Problem p = random_problem(rng, m, n, k);
    if (rng.chance(0.3)) {
      p.grouping = rng.chance(0.5) ? Grouping::kContiguous : Grouping::kMasked;
      p.l = rng.integer(1, 5);
    }
    if (p.grouping == Grouping::kContiguous && rng.chance(0.5)) p.a_rows = rng.integer(1, 2 * m);
    const Values values = rng.chance(0.3) ? Values::kWide : Values::kRandom;
    RandomCase c(p, rng, values);
    fill_optional(c, rng);
    const RunOptions options{.isa = GetParam(),
                             .threads = static_cast<int>(rng.integer(1, 3)),
                             .prepared = rng.chance(0.3)};
    const RunResult result = run_cpu(p, c.buffers(), options);
    ASSERT_TRUE(result.status.ok()) << describe(p, options) << ": " << result.status.message();
    ASSERT_EQ(result.info.isa, GetParam());
    ASSERT_TRUE(within_bound(p, c.buffers(), GetParam()))
        << describe(p, options) << ", trial " << trial;
  }
}

// Sums of multiples of 1/16 below 2^24/16 are exact in FP32 in any order, so every instruction set,
// AMX too, must give exactly the double result. Identity and power-of-two alphas keep it exact.
TEST_P(Gemm, ExactArithmeticIsEqualBitForBit) {
  Rng rng;
  for (const int64_t k : {16, 32, 48, 64, 80, 112, 128, 144, 256, 512, 528, 1040, 2048, 4096}) {
    for (const int64_t m : {1, 3, 4, 5, 6, 7, 17, 40}) {
      Problem p{.m = m, .n = 37, .k = k};
      p.d.type = DataType::kF32;
      p.act.kind = ActivationKind::kIdentity;
      if (k % 32 == 0) p.gate.scale_layout = p.a.scale_layout = ScaleLayout::kSwizzled128x4;
      if (m == 17) p.a.type = DataType::kF16;
      p.bias = any_bias(rng);
      RandomCase c(p, rng, Values::kExact);
      const RunResult result = run_cpu(p, c.buffers(), {.isa = GetParam()});
      ASSERT_TRUE(result.status.ok()) << result.status.message();
      const auto exact =
          reference::exact_tile(c.resolved, c.buffers(), {0, 0, m, 0, 0, 0}, 0, m, 0, p.n);
      for (int64_t i = 0; i < m * p.n; ++i) {
        const float gate = static_cast<float>(exact[static_cast<size_t>(i)].g);
        const float up = static_cast<float>(exact[static_cast<size_t>(i)].u);
        ASSERT_EQ(load_element(c.d.data.data(), DataType::kF32, i), gate * up)
            << "element " << i << " of " << describe(p, {.isa = GetParam()});
      }
    }
  }
}

TEST_P(Gemm, PaddingAndUnownedRowsAreNeitherReadNorWritten) {
  Rng rng;
  Problem p{.m = 9, .n = 48, .k = 80, .l = 3};
  p.a.ld = 96;
  p.gate.ld = 90;
  p.up.ld = 128;
  p.d = {.type = DataType::kE2M1, .ld = 64, .scale_layout = ScaleLayout::kSwizzled128x4};
  p.a.scale_layout = p.up.scale_layout = ScaleLayout::kSwizzled128x4;
  p.gate.scale_ld = 8;
  p.grouping = Grouping::kMasked;
  std::vector<uint8_t> outputs[2];
  for (const uint8_t poison : {uint8_t{0xFF}, uint8_t{0x00}}) {
    Rng same(7);
    RandomCase c(p, same, Values::kRandom, {9, 0, 4});
    // RandomCase fills operands with 0xFF before the values go in; the second round turns what is
    // still 0xFF in padding into 0, which must change nothing.
    if (poison == 0) {
      for (auto* operand : {&c.a, &c.gate, &c.up}) {
        const bool is_a = operand == &c.a;
        const core::ResolvedMatrix& matrix = is_a                 ? c.resolved.a
                                             : operand == &c.gate ? c.resolved.gate
                                                                  : c.resolved.up;
        const ScaleMap map = matrix.scale_map();
        for (int64_t batch = 0; batch < p.l; ++batch) {
          for (int64_t offset = 0; offset < map.required_span_size(); ++offset) {
            if (map.inverse(offset).is_padding)
              operand->scales[batch * matrix.scale_batch_stride + offset] = 0;
          }
        }
      }
    }
    const RunResult result = run_cpu(p, c.buffers(), {.isa = GetParam()});
    ASSERT_TRUE(result.status.ok()) << result.status.message();
    outputs[poison == 0 ? 1 : 0] = output_bytes(c);
    ASSERT_TRUE(within_bound(p, c.buffers(), GetParam()));
    // Rows 4 .. 8 of the last expert and all of the second one are not computed.
    for (int64_t row = 4; row < 9; ++row) {
      for (int64_t byte = 0; byte < 24; ++byte) {
        ASSERT_EQ(c.d.data[(2 * c.resolved.d.batch_stride + row * 64) / 2 + byte], kPoison);
        ASSERT_EQ(c.d.data[(1 * c.resolved.d.batch_stride + row * 64) / 2 + byte], kPoison);
      }
    }
    // The gap between n = 48 and ld = 64.
    for (int64_t byte = 24; byte < 32; ++byte) ASSERT_EQ(c.d.data[byte], kPoison);
  }
  EXPECT_EQ(outputs[0], outputs[1]);
}

// Consumers on GPUs expect zeros around swizzled scales.
TEST_P(Gemm, PaddingOfQuantisedSwizzledScalesIsZero) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kNone, Grouping::kContiguous, Grouping::kMasked}) {
    Problem p{.m = 21, .n = 80, .k = 64, .l = 3};
    p.d = {.type = DataType::kE2M1, .scale_layout = ScaleLayout::kSwizzled128x4};
    p.grouping = grouping;
    std::vector<int32_t> experts;
    if (grouping == Grouping::kContiguous) experts = {0, 4, 4, 21};
    if (grouping == Grouping::kMasked) experts = {21, 0, 7};
    RandomCase c(p, rng, Values::kRandom, experts);
    ASSERT_TRUE(run_cpu(p, c.buffers(), {.isa = GetParam()}).status.ok());
    // A scale of 0xFF would be a NaN that no input gives: what still holds it was not written.
    const int64_t tile_bytes = 2 * 512;  // 128 rows x 8 padded columns, of which 5 exist
    int64_t unwritten = 0, zeros_in_padding = 0;
    for (int64_t i = 0; i < c.d.scales.size(); ++i) {
      const auto at = ScaleMap(ScaleLayout::kSwizzled128x4, 128, 5).inverse(i % tile_bytes);
      const int64_t batch = grouping == Grouping::kContiguous ? 0 : i / tile_bytes;
      // Rows that are not computed, and experts that have none: a GPU has no tile there.
      const int64_t rows =
          grouping == Grouping::kMasked ? experts[static_cast<size_t>(batch)] : 128;
      if (rows == 0 || (at.row >= rows && at.row < p.m)) {
        ASSERT_EQ(c.d.scales[i], kPoison) << i;
        ++unwritten;
        continue;
      }
      if (at.col >= 5) {
        ASSERT_EQ(c.d.scales[i], 0) << i;
        ++zeros_in_padding;
      }
    }
    EXPECT_GT(zeros_in_padding, 0);
    EXPECT_EQ(unwritten, grouping == Grouping::kMasked ? 14 * 8 + tile_bytes : 0);
  }
}

TEST_P(Gemm, NanScalesReachEveryAffectedOutputAndNoOther) {
  Rng rng;
  for (const int64_t m : {2, 21}) {
    for (const uint8_t nan : {uint8_t{0x7F}, uint8_t{0xFF}}) {
      for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
        Problem p{.m = m, .n = 40, .k = 176};
        p.a.scale_layout = p.gate.scale_layout = p.up.scale_layout = layout;
        p.d.type = DataType::kF32;
        RandomCase c(p, rng, Values::kRandom);
        c.a.scales[c.resolved.a.scale_map()(1, 10)] = nan;
        c.gate.scales[c.resolved.gate.scale_map()(7, 3)] = nan;
        c.up.scales[c.resolved.up.scale_map()(39, 0)] = nan;
        ASSERT_TRUE(run_cpu(p, c.buffers(), {.isa = GetParam()}).status.ok());
        for (int64_t row = 0; row < m; ++row) {
          for (int64_t col = 0; col < p.n; ++col) {
            const float d = load_element(c.d.data.data(), DataType::kF32, row * p.n + col);
            ASSERT_EQ(std::isnan(d), row == 1 || col == 7 || col == 39) << row << ", " << col;
          }
        }
      }
    }
  }
}

TEST_P(Gemm, SignOfAScaleIsIgnored) {
  Rng rng;
  Problem p{.m = 6, .n = 33, .k = 96};
  RandomCase c(p, rng, Values::kRandom);
  ASSERT_TRUE(run_cpu(p, c.buffers(), {.isa = GetParam()}).status.ok());
  const auto positive = output_bytes(c);
  for (auto* operand : {&c.a, &c.gate, &c.up})
    for (uint8_t& scale : operand->scales) scale = static_cast<uint8_t>(scale | 0x80);
  c.poison_d();
  ASSERT_TRUE(run_cpu(p, c.buffers(), {.isa = GetParam()}).status.ok());
  EXPECT_EQ(output_bytes(c), positive);
}

// All 256 scale bytes and all 16 codes, each alone in a block: no decoder may confuse two of them.
TEST_P(Gemm, EveryScaleAndEveryCodeIsDecodedRight) {
  Problem p{.m = 16, .n = 256, .k = 16};
  p.d.type = DataType::kF32;
  p.act.kind = ActivationKind::kIdentity;
  Rng rng;
  for (const int64_t m : {1, 3, 16, 20}) {  // with and without decoded k-tiles
    p.m = m;
    RandomCase c(p, rng, Values::kExact);
    for (int64_t col = 0; col < 256; ++col) {
      c.gate.scales[col] = static_cast<uint8_t>(col);
      c.up.scales[col] = 0x38;
      for (int64_t byte = 0; byte < 8; ++byte) {
        c.gate.data[col * 8 + byte] = static_cast<uint8_t>(rng.byte());
        c.up.data[col * 8 + byte] = 0x22;  // 1, 1
      }
    }
    for (int64_t row = 0; row < m; ++row) {
      c.a.scales[row] = 0x38;
      const int64_t code = row % 16;  // at k = code, 1 elsewhere
      for (int64_t byte = 0; byte < 8; ++byte)
        c.a.data[row * 8 + byte] = static_cast<uint8_t>(
            byte == code / 2 ? (code % 2 ? 0x02 | code << 4 : 0x20 | code) : 0x22);
    }
    ASSERT_TRUE(run_cpu(p, c.buffers(), {.isa = GetParam()}).status.ok());
    const auto exact =
        reference::exact_tile(c.resolved, c.buffers(), {0, 0, m, 0, 0, 0}, 0, m, 0, p.n);
    for (int64_t i = 0; i < m * p.n; ++i) {
      const auto& e = exact[static_cast<size_t>(i)];
      const float want = static_cast<float>(e.gate.value) * static_cast<float>(e.up.value);
      const float got = load_element(c.d.data.data(), DataType::kF32, i);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(got)) << i;
      } else {
        ASSERT_EQ(got, want) << "row " << i / p.n << ", scale byte " << i % p.n;
      }
    }
  }
}

TEST_P(Gemm, ZeroGateGivesZero) {
  Rng rng;
  Problem p{.m = 5, .n = 20, .k = 64};
  RandomCase c(p, rng, Values::kRandom);
  for (int64_t row = 0; row < p.n; ++row)
    for (int64_t byte = 0; byte < p.k / 2; ++byte)
      c.gate.data[row * p.k / 2 + byte] = rng.chance(0.5) ? 0x80 : 0x08;  // +0 and -0
  ASSERT_TRUE(run_cpu(p, c.buffers(), {.isa = GetParam()}).status.ok());
  for (int64_t i = 0; i < p.m * p.n; ++i)
    ASSERT_EQ(load_element(c.d.data.data(), DataType::kF16, i), 0.0f);
}

INSTANTIATE_TEST_SUITE_P(AllIsas, Gemm, ::testing::ValuesIn(isas()), isa_name);

}  // namespace
}  // namespace dualgemm::test
