// Strategy fp8 against its definition, written again as plain loops: not a bound but the same bits,
// on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "dualgemm/formats.hpp"
#include "reference/dual_gemm.hpp"
#include "support/inputs.hpp"
#include "support/sanitizers.hpp"
#include "unit/cpu/run.hpp"

namespace dualgemm::test {
namespace {

RunOptions fp8_on(Isa isa, int threads = 2, bool prepared = false) {
  return {.isa = isa, .strategy = StrategyId::kFp8, .threads = threads, .prepared = prepared};
}

// One row after requantisation.
struct Row8 {
  std::vector<float> values;  // decoded E4M3
  float scale = 0.0f;
};

Row8 requantise(const std::vector<float>& row) {
  float amax = 0.0f;
  for (const float x : row) amax = std::isnan(x) || x > amax || -x > amax ? std::fabs(x) : amax;
  for (const float x : row) amax = std::isnan(x) ? x : amax;
  Row8 out;
  out.scale = amax / 448.0f;
  for (const float x : row)
    out.values.push_back(decode_e4m3(encode_e4m3(out.scale == 0.0f ? 0.0f : x / out.scale)));
  return out;
}

Row8 row_of(const core::ResolvedMatrix& matrix, const Operand& operand, int64_t batch, int64_t row,
            int64_t sf_row) {
  std::vector<float> values;
  const int64_t begin = batch * matrix.batch_stride + row * matrix.ld;
  for (int64_t k = 0; k < matrix.cols; ++k) {
    if (matrix.type != DataType::kE2M1) {
      values.push_back(load_element(operand.data.data(), matrix.type, begin + k));
      continue;
    }
    const uint8_t byte = operand.data[(begin + k) / 2];
    const uint8_t scale =
        operand.scales[batch * matrix.scale_batch_stride + matrix.scale_map()(sf_row, k / kSfVec)];
    values.push_back(decode_e2m1(k % 2 == 0 ? byte & 0xF : byte >> 4) * decode_scale(scale));
  }
  return requantise(values);
}

float dot(const Row8& a, const Row8& w) {
  float sum = 0.0f;
  for (size_t k = 0; k < a.values.size(); ++k) sum += a.values[k] * w.values[k];
  return sum * w.scale * a.scale;
}

// FP32 D of an identity activation; elements that no expert owns stay NaN.
std::vector<float> definition(RandomCase& c) {
  const Buffers b = c.buffers();
  const core::ResolvedMatrix& d = c.resolved.d;
  std::vector<float> out(static_cast<size_t>(c.d.data.size() / 4), std::nanf(""));
  core::RowGroups groups(c.problem, b);
  for (core::RowGroup group; groups.next(group);) {
    const float alpha_gate =
        b.alpha_gate_per_batch ? b.alpha_gate_per_batch[group.batch] : b.alpha_gate;
    const float alpha_up = b.alpha_up_per_batch ? b.alpha_up_per_batch[group.batch] : b.alpha_up;
    std::vector<Row8> gate, up;
    for (int64_t n = 0; n < c.problem.n; ++n) {
      gate.push_back(row_of(c.resolved.gate, c.gate, group.batch, n, n));
      up.push_back(row_of(c.resolved.up, c.up, group.batch, n, n));
    }
    for (int64_t r = 0; r < group.rows; ++r) {
      const int64_t row = group.row_begin + r;
      const Row8 a = row_of(c.resolved.a, c.a, group.a_batch, row, group.sf_row_begin + r);
      const float s = b.a_row_scale ? b.a_row_scale[group.a_batch * c.problem.m + row] : 1.0f;
      for (int64_t n = 0; n < c.problem.n; ++n) {
        const auto at = static_cast<size_t>(group.a_batch * d.batch_stride + row * d.ld + n);
        const auto bias = [&](const void* biases) {
          const int64_t index = group.batch * c.problem.n + n;
          if (c.problem.bias == BiasType::kNone) return -0.0f;
          return load_element(
              biases, c.problem.bias == BiasType::kF32 ? DataType::kF32 : DataType::kBF16, index);
        };
        out[at] = (dot(a, gate[static_cast<size_t>(n)]) * alpha_gate * s + bias(b.bias_gate)) *
                  (dot(a, up[static_cast<size_t>(n)]) * alpha_up * s + bias(b.bias_up));
      }
    }
  }
  return out;
}

Problem random_problem(Rng& rng) {
  Problem p{.m = rng.integer(1, 20),
            .n = rng.integer(1, 70),
            .k = 16 * rng.integer(1, 40),  // up to three k-tiles
            .d = {.type = DataType::kF32},
            .act = {.kind = ActivationKind::kIdentity}};
  if (rng.chance(0.2)) p.m = rng.integer(120, 140);  // two row chunks
  p.a.type = static_cast<DataType>(rng.integer(0, 3));
  switch (rng.integer(0, 3)) {
    case 1:
      p.l = 2;
      break;
    case 2:
      p.l = 4;
      p.grouping = Grouping::kMasked;
      break;
    case 3:
      p.l = 4;
      p.grouping = Grouping::kContiguous;
      break;
    default:
      break;
  }
  for (Matrix* matrix : {&p.a, &p.gate, &p.up}) {
    if (rng.chance(0.3)) matrix->ld = p.k + 2 * rng.integer(0, 20);
    if (matrix->type == DataType::kE2M1 && rng.chance(0.5))
      matrix->scale_layout = ScaleLayout::kSwizzled128x4;
  }
  if (rng.chance(0.3)) p.d.ld = p.n + rng.integer(0, 20);
  p.bias = any_bias(rng);
  return p;
}

class Fp8 : public ::testing::TestWithParam<Isa> {};

TEST_P(Fp8, EqualsItsDefinitionBitForBit) {
  Rng rng;
  for (int trial = 0; trial < (kSanitized ? 20 : 60); ++trial) {
    const Problem p = random_problem(rng);
    RandomCase c(p, rng, rng.chance(0.3) ? Values::kWide : Values::kRandom);
    if (rng.chance(0.5))
      for (int64_t i = 0; i < p.l * p.m; ++i) c.a_row_scale.push_back(rng.uniform(0.5f, 2.0f));
    if (rng.chance(0.5)) {
      for (int64_t i = 0; i < p.l; ++i) c.alpha_gate_per_batch.push_back(rng.uniform(0.5f, 2.0f));
      for (int64_t i = 0; i < p.l; ++i) c.alpha_up_per_batch.push_back(rng.uniform(-2.0f, -0.5f));
    }
    const auto options = fp8_on(GetParam(), static_cast<int>(rng.integer(1, 3)), rng.chance(0.4));
    const RunResult result = run_cpu(p, c.buffers(), options);
    ASSERT_TRUE(result.status.ok()) << result.status.message();
    EXPECT_EQ(result.info.isa, GetParam());
    EXPECT_EQ(result.info.threads, options.threads);
    const std::vector<float> expected = definition(c);
    for (size_t i = 0; i < expected.size(); ++i) {
      const float got = load_element(c.d.data.data(), DataType::kF32, static_cast<int64_t>(i));
      if (std::isnan(expected[i])) {  // poison is a NaN too
        for (size_t byte = 4 * i; byte < 4 * i + 4; ++byte)
          ASSERT_EQ(c.d.data[static_cast<int64_t>(byte)], kPoison) << "written outside d";
        continue;
      }
      ASSERT_EQ(got, expected[i]) << "element " << i << " of " << result.plan.config() << ", trial "
                                  << trial;
    }
  }
}

// The epilogue is the one of the other strategies, in every type of D.
TEST_P(Fp8, SameBitsAsScalarForEveryOutput) {
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16, DataType::kF32}) {
    for (const int64_t m : {1, 9, 133}) {
      Problem p{.m = m, .n = 80, .k = 528, .d = {.type = type}, .act = Activation::swiglu_oai()};
      if (type == DataType::kE2M1) p.d.scale_layout = ScaleLayout::kSwizzled128x4;
      RandomCase c(p, rng, Values::kRandom);
      c.alpha_gate = c.alpha_up = 0.01f;
      c.d_global_scale = 0.01f;
      c.poison_d();
      ASSERT_TRUE(run_cpu(p, c.buffers(), fp8_on(Isa::kScalar, 1)).status.ok());
      const auto expected = output_bytes(c);
      for (const bool prepared : {false, true}) {
        c.poison_d();
        ASSERT_TRUE(run_cpu(p, c.buffers(), fp8_on(GetParam(), 3, prepared)).status.ok());
        EXPECT_EQ(output_bytes(c), expected) << name_of(type) << " m " << m;
      }
    }
  }
}

// The relative L2 distance of both products from the exact ones.
double error_of(RandomCase& c, const std::vector<float>& got) {
  const Problem& p = c.problem;
  const auto exact =
      reference::exact_tile(c.resolved, c.buffers(), {0, 0, p.m, 0, 0, 0}, 0, p.m, 0, p.n);
  double error = 0.0, size = 0.0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += (got[i] - exact[i].d) * (got[i] - exact[i].d);
    size += exact[i].d * exact[i].d;
  }
  return std::sqrt(error / size);
}

std::vector<float> run_f32(RandomCase& c, Isa isa) {
  EXPECT_TRUE(run_cpu(c.problem, c.buffers(), fp8_on(isa)).status.ok());
  std::vector<float> got;
  for (int64_t i = 0; i < c.problem.m * c.problem.n; ++i)
    got.push_back(load_element(c.d.data.data(), DataType::kF32, i));
  return got;
}

// E4M3 has four significant bits: neither exact nor far off.
TEST_P(Fp8, LosesSomeBitsAndNotMore) {
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kBF16}) {
    Problem p{.m = 16, .n = 64, .k = 2048, .d = {.type = DataType::kF32}};
    p.a.type = type;
    RandomCase c(p, rng, Values::kRandom);
    c.alpha_gate = c.alpha_up = 0.02f;
    const double error = error_of(c, run_f32(c, GetParam()));
    EXPECT_GT(error, 0.005) << name_of(type);
    EXPECT_LT(error, 0.08) << name_of(type);
  }
}

// Weights of magnitude 0, 1.5 and 3 and activations that are E4M3 numbers, each row with a 448 (or
// a 3), are requantised without loss: what remains is FP32 rounding.
TEST_P(Fp8, LosesNothingThatE4M3Holds) {
  Rng rng;
  Problem p{.m = 7,
            .n = 33,
            .k = 320,
            .d = {.type = DataType::kF32},
            .act = {.kind = ActivationKind::kIdentity}};
  p.a.type = DataType::kF32;
  RandomCase c(p, rng, Values::kExact);
  for (Operand* operand : {&c.gate, &c.up}) {
    for (int64_t i = 0; i < operand->data.size(); ++i)
      operand->data[i] = static_cast<uint8_t>((i % 2 ? 0x35 : 0xB5) ^ (rng.integer(0, 1) << 3));
    for (int64_t i = 0; i < operand->scales.size(); ++i) operand->scales[i] = 0x40;
  }
  for (int64_t i = 0; i < p.m * p.k; ++i) {
    const float x = i % p.k == 5 ? 448.0f : decode_e4m3(static_cast<uint8_t>(rng.integer(0, 0x7E)));
    store_element(c.a.data.data(), DataType::kF32, i, x);
  }
  EXPECT_LT(error_of(c, run_f32(c, GetParam())), 1e-5);
}

TEST_P(Fp8, NanScalesReachTheirRowsAndColumns) {
  Rng rng;
  Problem p{.m = 21, .n = 40, .k = 528, .d = {.type = DataType::kF32}};
  RandomCase c(p, rng, Values::kRandom);
  c.a.scales[c.resolved.a.scale_map()(1, 10)] = 0x7F;
  c.gate.scales[c.resolved.gate.scale_map()(7, 3)] = 0xFF;
  c.up.scales[c.resolved.up.scale_map()(39, 32)] = 0x7F;
  const std::vector<float> got = run_f32(c, GetParam());
  for (int64_t i = 0; i < p.m * p.n; ++i) {
    const int64_t row = i / p.n, col = i % p.n;
    ASSERT_EQ(std::isnan(got[static_cast<size_t>(i)]), row == 1 || col == 7 || col == 39)
        << row << ", " << col;
  }
}

TEST_P(Fp8, RowsOfZerosGiveZero) {
  Rng rng;
  Problem p{.m = 3, .n = 20, .k = 64, .d = {.type = DataType::kF32}};
  p.a.type = DataType::kF16;
  RandomCase c(p, rng, Values::kRandom);
  for (int64_t i = 0; i < p.k; ++i) store_element(c.a.data.data(), DataType::kF16, i, 0.0f);
  const std::vector<float> got = run_f32(c, GetParam());
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(got[i], 0.0f);
  EXPECT_TRUE(std::any_of(got.begin() + 20, got.end(), [](float x) { return x != 0.0f; }));
}

INSTANTIATE_TEST_SUITE_P(AllIsas, Fp8, ::testing::ValuesIn(isas()), isa_name);

TEST(Fp8Plan, CountsTheRequantisedOperands) {
  Rng rng;
  Problem p{.m = 5, .n = 32, .k = 64, .l = 2, .grouping = Grouping::kMasked};
  RandomCase c(p, rng, Values::kRandom, {5, 2});
  const int64_t a_bytes = 7 * (64 + 4), weight_bytes = 2 * 2 * 32 * (64 + 4);
  const RunResult raw = run_cpu(p, c.buffers(), fp8_on(Isa::kScalar));
  EXPECT_EQ(raw.info.intermediate_bytes, 2 * (a_bytes + weight_bytes));
  const RunResult prepared = run_cpu(p, c.buffers(), fp8_on(Isa::kScalar, 2, true));
  EXPECT_EQ(prepared.info.intermediate_bytes, 2 * a_bytes);
  EXPECT_EQ(prepared.plan.prepared_bytes, 2 * (256 + (weight_bytes / 2 + 255) / 256 * 256));
  EXPECT_LT(prepared.plan.workspace_bytes, raw.plan.workspace_bytes);
}

TEST(Fp8Plan, BatchInvarianceExcludesIt) {
  Rng rng;
  Problem p{.m = 5, .n = 32, .k = 64, .batch_invariant = true};
  RandomCase c(p, rng, Values::kRandom);
  const Status status = run_cpu(p, c.buffers(), fp8_on(Isa::kScalar)).status;
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.rule().find("batch_invariant"), std::string::npos);
}

TEST(Fp8Plan, EditedPlansAreRefused) {
  const Strategy* strategy =
      plan::find_strategy(cpu::strategies(), StrategyId::kFp8, DeviceKind::kCpu);
  ASSERT_NE(strategy, nullptr);
  Rng rng;
  RandomCase c({.m = 5, .n = 32, .k = 64}, rng, Values::kRandom);
  Plan good;
  good.problem = c.problem;
  good.strategy = StrategyId::kFp8;
  good.threads = 2;
  ASSERT_TRUE(strategy->plan(good, machine()).ok());
  std::vector<Plan> bad(5, good);
  bad[0].shape.l2_rows = 0;
  bad[1].shape.l2_rows = 1 << 20;
  bad[2].shape.l2_pairs = 0;
  bad[3].shape.l2_pairs = 1 << 20;
  bad[4].workspace_bytes -= 1;
  for (const Plan& plan : bad) {
    const Status status = strategy->run(plan, checked(plan.problem), c.buffers(), nullptr, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.message();
  }
}

}  // namespace
}  // namespace dualgemm::test
