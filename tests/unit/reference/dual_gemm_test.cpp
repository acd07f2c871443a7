// The oracle against hand-made numbers and against itself in other layouts.
#include "reference/dual_gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "dualgemm/dualgemm.hpp"
#include "support/compare.hpp"
#include "support/inputs.hpp"

namespace dualgemm {
namespace {

using test::RandomCase;
using test::Rng;
using test::Values;

// One row, one column, k = 32: small enough to work out on paper.
//   a    = (1, 2, 0 ...) * 2,  then (-3, 0 ...) * 0.5        scales 0x40 = 2, 0x30 = 0.5
//   gate = (0.5, 1.5, 0 ...) * 1, then (4, 0 ...) * 4        scales 0x38 = 1, 0x48 = 4
//   up   = (6, -1, 0 ...) * 1, then (1, 0 ...) * 0.25        scales 0x38 = 1, 0x28 = 0.25
//   Gate product = 2*0.5 + 4*1.5 - 1.5*16 = -17,  Up product = 2*6 - 4 - 1.5*0.25 = 7.625
struct OnPaper {
  uint8_t a[16] = {0x42, 0, 0, 0, 0, 0, 0, 0, 0x0D}, a_scales[2] = {0x40, 0x30};
  uint8_t gate[16] = {0x31, 0, 0, 0, 0, 0, 0, 0, 0x06}, gate_scales[2] = {0x38, 0x48};
  uint8_t up[16] = {0xA7, 0, 0, 0, 0, 0, 0, 0, 0x02}, up_scales[2] = {0x38, 0x28};
  float d = 0.0f;
  Problem problem{.m = 1,
                  .n = 1,
                  .k = 32,
                  .d = {.type = DataType::kF32},
                  .act = {.kind = ActivationKind::kIdentity}};

  Buffers buffers() {
    return {.a = a,
            .a_scales = a_scales,
            .gate = gate,
            .gate_scales = gate_scales,
            .up = up,
            .up_scales = up_scales,
            .d = &d};
  }
  float run(const Buffers& b) {
    EXPECT_TRUE(validate(problem, b).ok()) << validate(problem, b).message();
    EXPECT_TRUE(reference::dual_gemm(problem, b).ok());
    return d;
  }
};

TEST(Oracle, WorkedOutOnPaper) {
  OnPaper p;
  EXPECT_EQ(p.run(p.buffers()), -17.0f * 7.625f);
}

TEST(Oracle, AlphasAndRowScale) {
  OnPaper p;
  Buffers b = p.buffers();
  b.alpha_gate = 0.5f;
  b.alpha_up = -4.0f;
  EXPECT_EQ(p.run(b), -8.5f * -30.5f);
  const float row_scale = 2.0f;
  b.a_row_scale = &row_scale;
  EXPECT_EQ(p.run(b), -17.0f * -61.0f);
  const float per_batch_gate = 0.25f, per_batch_up = 1.0f;
  b.alpha_gate_per_batch = &per_batch_gate;
  b.alpha_up_per_batch = &per_batch_up;
  EXPECT_EQ(p.run(b), -8.5f * 15.25f) << "they replace the scalars";
}

TEST(Oracle, BiasIsAddedAfterAlphaAndBeforeTheActivation) {
  OnPaper p;
  Buffers b = p.buffers();
  b.alpha_gate = 0.5f;
  b.alpha_up = -4.0f;
  const float bias_gate = 1.25f, bias_up = 0.5f;
  p.problem.bias = BiasType::kF32;
  b.bias_gate = &bias_gate;
  b.bias_up = &bias_up;
  EXPECT_EQ(p.run(b), -7.25f * -30.0f);
  const uint16_t half_gate = 0x4040, half_up = 0xC1F4;  // 3, -30.5
  p.problem.bias = BiasType::kBF16;
  b.bias_gate = &half_gate;
  b.bias_up = &half_up;
  EXPECT_EQ(p.run(b), -5.5f * -61.0f);
  b.alpha_gate = 0.0f;
  EXPECT_EQ(p.run(b), 3.0f * -61.0f);
  p.problem.act = Activation::silu();
  EXPECT_NEAR(p.run(b), 3.0 / (1.0 + std::exp(-3.0)) * -61.0, 1e-4);
}

TEST(Oracle, BiasThatIsNotFiniteReachesTheOutput) {
  OnPaper p;
  p.problem.bias = BiasType::kF32;
  for (const float number : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    for (const bool gate : {false, true}) {
      const float bias = number, zero = 0.0f;
      Buffers b = p.buffers();
      b.bias_gate = gate ? &bias : &zero;
      b.bias_up = gate ? &zero : &bias;
      const float factor = gate ? 7.625f : -17.0f, d = p.run(b);
      EXPECT_TRUE(std::isnan(number) ? std::isnan(d) : d == number * factor) << number;
    }
  }
}

TEST(Oracle, ActivationWorksOnScaledGate) {
  OnPaper p;
  p.problem.act = Activation::silu();
  Buffers b = p.buffers();
  b.alpha_gate = -0.125f;  // g = 2.125: sigmoid 0.8933094
  EXPECT_NEAR(p.run(b), 2.125 / (1.0 + std::exp(-2.125)) * 7.625, 1e-5);
}

TEST(Oracle, ElementsCarryWhatBoundsNeed) {
  OnPaper p;
  const auto resolved = core::resolve(p.problem);
  const auto tile = reference::exact_tile(resolved, p.buffers(), {0, 0, 1, 0, 0, 0}, 0, 1, 0, 1);
  ASSERT_EQ(tile.size(), 1u);
  EXPECT_EQ(tile[0].gate.value, -17.0);
  EXPECT_EQ(tile[0].gate.abs_sum, 31.0);
  EXPECT_EQ(tile[0].gate.running_sum, 7.0 + 17.0);
  EXPECT_EQ(tile[0].up.value, 7.625);
  EXPECT_EQ(tile[0].d, -17.0 * 7.625);
}

// Gate's product is -17, Up's 7.625: on paper, without each other.
TEST(Oracle, SideBySideIsBothProductsWithBiasAndResidual) {
  OnPaper p;
  p.problem.combine = Combine::kSideBySide;
  p.problem.act = {};
  p.problem.bias = BiasType::kF32;
  p.problem.residual = true;
  const float bias_gate = 0.5f, bias_up = -1.0f, residual[2] = {100.0f, 1000.0f};
  float d[2];
  Buffers b = p.buffers();
  b.alpha_gate = 2.0f;
  b.bias_gate = &bias_gate;
  b.bias_up = &bias_up;
  b.residual = residual;
  b.d = d;
  p.problem.up_column = 1;
  ASSERT_TRUE(validate(p.problem, b).ok()) << validate(p.problem, b).message();
  ASSERT_TRUE(reference::dual_gemm(p.problem, b).ok());
  EXPECT_EQ(d[0], 2.0f * -17.0f + 0.5f + 100.0f);
  EXPECT_EQ(d[1], 7.625f - 1.0f + 1000.0f);
  p.problem.up_column = 0;  // nothing of Gate
  d[1] = -3.0f;
  ASSERT_TRUE(reference::dual_gemm(p.problem, b).ok());
  EXPECT_EQ(d[0], 7.625f - 1.0f + 100.0f);
  EXPECT_EQ(d[1], -3.0f);
  p.problem.residual = false;
  b.residual = nullptr;
  ASSERT_TRUE(reference::dual_gemm(p.problem, b).ok());
  EXPECT_EQ(d[0], 7.625f - 1.0f);
}

TEST(Oracle, NaNScaleReachesTheOutput) {
  for (const uint8_t nan : {0x7F, 0xFF}) {
    OnPaper p;
    p.gate_scales[1] = nan;
    EXPECT_TRUE(std::isnan(p.run(p.buffers())));
  }
}

TEST(Oracle, SignOfAScaleIsIgnored) {
  OnPaper p;
  for (uint8_t* scales : {p.a_scales, p.gate_scales, p.up_scales}) scales[0] |= 0x80;
  EXPECT_EQ(p.run(p.buffers()), -17.0f * 7.625f);
}

TEST(Oracle, OutputTypesRoundOnce) {
  OnPaper p;
  Buffers b = p.buffers();
  b.alpha_up = 1.0f / 3.0f;  // D = -17 * 7.625 * float(1/3) = -43.2083346...
  uint16_t half = 0;
  b.d = &half;
  p.problem.d.type = DataType::kF16;
  ASSERT_TRUE(reference::dual_gemm(p.problem, b).ok());
  EXPECT_EQ(half, 0xD167) << "-43.21875: steps of 1/32 in 32 .. 64";
  p.problem.d.type = DataType::kBF16;
  ASSERT_TRUE(reference::dual_gemm(p.problem, b).ok());
  EXPECT_EQ(half, 0xC22D) << "-43.25: steps of 1/4 in 32 .. 64";
}

TEST(Oracle, QuantisedOutputFollowsTheRecipe) {
  Problem problem{.m = 1, .n = 16, .k = 16};
  problem.act.kind = ActivationKind::kIdentity;
  problem.d.type = DataType::kE2M1;
  std::vector<uint8_t> a(8, 0), weights(128, 0), a_scales(1, 0x38), scales(16, 0x38);
  a[0] = 0x2;                                           // a = (1, 0 ...)
  for (int n = 0; n < 16; ++n) weights[n * 8] = n % 8;  // gate = up = 0, 0.5 ... 6, 0, 0.5 ...
  uint8_t d[8], d_scale = 0;
  const Buffers b{.a = a.data(),
                  .a_scales = a_scales.data(),
                  .gate = weights.data(),
                  .gate_scales = scales.data(),
                  .up = weights.data(),
                  .up_scales = scales.data(),
                  .d = d,
                  .d_scales = &d_scale,
                  .d_global_scale = 0.5f};
  ASSERT_TRUE(validate(problem, b).ok()) << validate(problem, b).message();
  ASSERT_TRUE(reference::dual_gemm(problem, b).ok());
  // D = 0, 1/4, 1, 9/4, 4, 9, 16, 36; G = 2, so the scale is e4m3(2*36/6) = 12 and the codes are
  // those of 2d/12 = 0, 0.042, 0.167, 0.375, 0.667, 1.5, 2.67, 6 -> 0, 0, 0, 0.5, 0.5, 1.5, 3, 6.
  EXPECT_EQ(d_scale, 0x54);
  for (const int half : {0, 4}) {
    EXPECT_EQ(d[half + 0], 0x00);
    EXPECT_EQ(d[half + 1], 0x10);
    EXPECT_EQ(d[half + 2], 0x31);
    EXPECT_EQ(d[half + 3], 0x75);
  }
}

Values values_for(Rng& rng) { return rng.chance(0.5) ? Values::kRandom : Values::kWide; }

// Slowly and differently: decode whole matrices first, multiply after.
std::vector<double> decoded(const core::ResolvedMatrix& matrix, const test::Operand& operand,
                            int64_t batch) {
  std::vector<double> out;
  const ScaleMap map = matrix.scale_map();
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t col = 0; col < matrix.cols; ++col) {
      const int64_t index = batch * matrix.batch_stride + row * matrix.ld + col;
      if (matrix.type != DataType::kE2M1) {
        out.push_back(test::load_element(operand.data.data(), matrix.type, index));
        continue;
      }
      const uint8_t scale = operand.scales[batch * matrix.scale_batch_stride + map(row, col / 16)];
      const int code = operand.data[index / 2] >> (index % 2 * 4) & 0xF;
      out.push_back(double{decode_e2m1(static_cast<uint8_t>(code))} * decode_scale(scale));
    }
  }
  return out;
}

Matrix padded(Rng& rng, Matrix matrix, int64_t rows, int64_t cols) {
  matrix.ld = cols + 2 * rng.integer(0, 9);
  matrix.batch_stride = rows * matrix.ld + 2 * rng.integer(0, 9);
  if (matrix.type != DataType::kE2M1) return matrix;
  if (rng.chance(0.5)) {
    matrix.scale_layout = ScaleLayout::kSwizzled128x4;
    return matrix;
  }
  matrix.scale_ld = cols / 16 + rng.integer(0, 3);
  matrix.scale_batch_stride = rows * matrix.scale_ld + rng.integer(0, 3);
  return matrix;
}

TEST(Oracle, EveryLayoutAndTypeOfABatch) {
  Rng rng;
  for (int round = 0; round < 60; ++round) {
    Problem p{.m = rng.integer(1, 70), .n = rng.integer(1, 70), .k = 16 * rng.integer(1, 9)};
    p.l = rng.integer(1, 3);
    p.act.kind = ActivationKind::kIdentity;
    p.d.type = DataType::kF32;
    p.a.type = static_cast<DataType>(rng.integer(0, 3));
    p.a = padded(rng, p.a, p.m, p.k);
    p.gate = padded(rng, p.gate, p.n, p.k);
    p.up = padded(rng, p.up, p.n, p.k);
    p.d = padded(rng, p.d, p.m, p.n);
    RandomCase data(p, rng, values_for(rng));
    ASSERT_TRUE(validate(p, data.buffers()).ok()) << validate(p, data.buffers()).message();
    ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
    int64_t written = 0;
    for (int64_t batch = 0; batch < p.l; ++batch) {
      const auto a = decoded(data.resolved.a, data.a, batch);
      const auto gate = decoded(data.resolved.gate, data.gate, batch);
      const auto up = decoded(data.resolved.up, data.up, batch);
      for (int64_t row = 0; row < p.m; ++row) {
        for (int64_t col = 0; col < p.n; ++col, ++written) {
          double g = 0.0, u = 0.0;
          for (int64_t k = 0; k < p.k; ++k) {
            g += a[row * p.k + k] * gate[col * p.k + k];
            u += a[row * p.k + k] * up[col * p.k + k];
          }
          const double want = double{data.alpha_gate} * g * (double{data.alpha_up} * u);
          const double got = test::load_element(
              data.d.data.data(), DataType::kF32,
              batch * data.resolved.d.batch_stride + row * data.resolved.d.ld + col);
          ASSERT_NEAR(got, want, std::abs(want) * 1e-7 + 1e-30)
              << "round " << round << " batch " << batch << " (" << row << ", " << col << ")";
        }
      }
    }
    // Whatever is not an element of D is still poison.
    int64_t poisoned = 0;
    for (int64_t i = 0; i < data.d.data.size() / 4; ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, data.d.data.data() + 4 * i, 4);
      poisoned += bits == 0xFFFFFFFFu;
    }
    EXPECT_EQ(poisoned, data.d.data.size() / 4 - written);
  }
}

// Groups are judged by single problems made of the same bytes.
void expect_groups_equal_single_problems(RandomCase& data) {
  const Buffers b = data.buffers();
  ASSERT_TRUE(validate(data.problem, b).ok()) << validate(data.problem, b).message();
  ASSERT_TRUE(reference::dual_gemm(data.problem, b).ok());
  const core::ResolvedProblem& r = data.resolved;
  core::RowGroups groups(data.problem, b);
  int64_t written_rows = 0;
  for (core::RowGroup group; groups.next(group);) {
    written_rows += group.rows;
    if (group.rows == 0) continue;
    Problem one = data.problem;
    one.grouping = Grouping::kNone;
    one.m = group.rows;
    one.l = 1;
    one.d = {.type = DataType::kF16};
    std::vector<uint16_t> d(static_cast<size_t>(one.m * one.n), 0);
    Buffers single;
    single.a = static_cast<const uint8_t*>(b.a) +
               (group.a_batch * r.a.batch_stride + group.row_begin * r.a.ld) / 2;
    // Groups begin where a tile of scales begins, so a group's scales are a layout of their own.
    single.a_scales = b.a_scales + group.a_batch * r.a.scale_batch_stride +
                      r.a.scale_map()(group.sf_row_begin, 0);
    single.gate = static_cast<const uint8_t*>(b.gate) + group.batch * r.gate.batch_stride / 2;
    single.gate_scales = b.gate_scales + group.batch * r.gate.scale_batch_stride;
    single.up = static_cast<const uint8_t*>(b.up) + group.batch * r.up.batch_stride / 2;
    single.up_scales = b.up_scales + group.batch * r.up.scale_batch_stride;
    single.alpha_gate = b.alpha_gate_per_batch[group.batch];
    single.alpha_up = b.alpha_up_per_batch[group.batch];
    single.bias_gate = data.bias_gate.data() + group.batch * one.n * core::bytes_of(one.bias);
    single.bias_up = data.bias_up.data() + group.batch * one.n * core::bytes_of(one.bias);
    if (one.bias == BiasType::kNone) single.bias_gate = single.bias_up = nullptr;
    const int64_t rows_before = group.a_batch * data.problem.m + group.row_begin;
    single.a_row_scale = b.a_row_scale + rows_before;
    single.d = d.data();
    ASSERT_TRUE(validate(one, single).ok()) << validate(one, single).message();
    ASSERT_TRUE(reference::dual_gemm(one, single).ok());
    const auto* got = static_cast<const uint16_t*>(b.d) + group.a_batch * r.d.batch_stride +
                      group.row_begin * r.d.ld;
    EXPECT_TRUE(test::same_bits(got, r.d.ld, d.data(), one.n, one.m, one.n))
        << "expert " << group.batch;
  }
  int64_t poisoned = 0;
  const auto* d = static_cast<const uint16_t*>(b.d);
  for (int64_t i = 0; i < data.d.data.size() / 2; ++i) poisoned += d[i] == 0xFFFF;
  EXPECT_EQ(poisoned, data.d.data.size() / 2 - written_rows * data.problem.n);
}

TEST(Oracle, GroupsEqualSingleProblems) {
  Rng rng;
  for (int round = 0; round < 40; ++round) {
    Problem p{.m = rng.integer(1, 300), .n = rng.integer(1, 20), .k = 16 * rng.integer(1, 6)};
    p.l = rng.integer(1, 5);
    p.grouping = round % 2 == 0 ? Grouping::kContiguous : Grouping::kMasked;
    for (Matrix* matrix : {&p.a, &p.gate, &p.up}) {
      if (rng.chance(0.5)) matrix->scale_layout = ScaleLayout::kSwizzled128x4;
    }
    p.bias = test::any_bias(rng);
    RandomCase data(p, rng, Values::kRandom);
    for (int64_t i = 0; i < p.l * p.m; ++i) data.a_row_scale.push_back(rng.uniform(0.5f, 2.0f));
    for (int64_t i = 0; i < p.l; ++i) {
      data.alpha_gate_per_batch.push_back(rng.uniform(0.01f, 0.1f));
      data.alpha_up_per_batch.push_back(rng.uniform(0.01f, 0.1f));
    }
    expect_groups_equal_single_problems(data);
  }
}

// D's scale layout may differ from A's: contiguous groups then start at different scale rows.
TEST(Oracle, QuantisedGroupsWithMixedScaleLayouts) {
  Problem p{.m = 7, .n = 32, .k = 64, .l = 3, .grouping = Grouping::kContiguous};
  p.d.type = DataType::kE2M1;
  for (const bool swizzled_a : {false, true}) {
    p.a.scale_layout = swizzled_a ? ScaleLayout::kSwizzled128x4 : ScaleLayout::kLinear;
    p.d.scale_layout = swizzled_a ? ScaleLayout::kLinear : ScaleLayout::kSwizzled128x4;
    Rng rng;
    RandomCase data(p, rng, Values::kRandom, {0, 2, 3, 7});
    ASSERT_TRUE(validate(p, data.buffers()).ok());
    ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
    const ScaleMap map = data.resolved.d.scale_map();
    int64_t written = 0;
    const int64_t first_row[] = {0, 128, 256};
    for (int64_t row = 0; row < 7; ++row) {
      const int expert = row < 2 ? 0 : row < 3 ? 1 : 2;
      const int64_t begin = expert == 0 ? 0 : expert == 1 ? 2 : 3;
      const int64_t sf_row = swizzled_a ? row : first_row[expert] + row - begin;
      for (int64_t col = 0; col < 2; ++col, ++written) {
        EXPECT_NE(data.d.scales[map(sf_row, col)], test::kPoison);
      }
    }
    for (const uint8_t byte : data.d.scales) written -= byte != test::kPoison;
    EXPECT_EQ(written, 0) << "a scale was written that belongs to no row";
  }
}

}  // namespace
}  // namespace dualgemm
