// The judge is judged: a right result passes, a corrupted tile fails and is found, whole and
// sampled.
#include "tools/verify/check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/problem.hpp"
#include "dualgemm/dualgemm.hpp"
#include "dualgemm/formats.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::verify {
namespace {

struct Fixture {
  Problem problem;
  Operands operands;
  Output output;
  Buffers buffers;
};

// A right result, by the oracle.
Fixture make(int64_t m, int64_t n, int64_t k, DataType d_type, int64_t l = 1) {
  Fixture fixture;
  fixture.problem.m = m;
  fixture.problem.n = n;
  fixture.problem.k = k;
  fixture.problem.l = l;
  fixture.problem.d.type = d_type;
  Expected<Operands> operands = random_operands(fixture.problem, RandomKind::kEdges, 7);
  EXPECT_TRUE(operands.ok()) << operands.status().message();
  fixture.operands = *std::move(operands);
  Expected<Output> output = allocate_output(fixture.problem);
  EXPECT_TRUE(output.ok()) << output.status().message();
  fixture.output = *std::move(output);
  fixture.buffers = fixture.operands.buffers();
  fixture.output.attach_to(fixture.buffers);
  PlanOptions options;
  options.strategy = StrategyId::kReference;
  const Status status = run(fixture.problem, fixture.buffers, options);
  EXPECT_TRUE(status.ok()) << status.message();
  return fixture;
}

CheckReport check(const Fixture& fixture, int64_t samples = 0) {
  const Expected<CheckReport> report =
      check_result(fixture.problem, fixture.buffers, Isa::kScalar, {samples, 3});
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? *report : CheckReport();
}

TEST(CheckResult, RightResultsPass) {
  for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32, DataType::kE2M1}) {
    const Fixture fixture = make(37, 48, 64, type, 2);
    const CheckReport report = check(fixture);
    EXPECT_TRUE(report.passed()) << name_of(type);
    EXPECT_EQ(report.compared, 37 * 48 * 2);
    EXPECT_LE(report.worst_share, 1.0);
    EXPECT_EQ(report.picture(), "...\n...\n...\n...\n...\n...\n");
  }
}

// Both parts of a side by side D are looked at, to its last column.
TEST(CheckResult, SideBySideIsJudgedAsAWhole) {
  for (const DataType type : {DataType::kF16, DataType::kF32, DataType::kE2M1}) {
    Problem p{.m = 17, .n = 48, .k = 64, .bias = BiasType::kF32, .combine = Combine::kSideBySide};
    p.up_column = 32;
    p.bias_stride = 80;
    p.d.type = type;
    p.residual = type != DataType::kE2M1;
    const Expected<Operands> operands = random_operands(p, RandomKind::kEdges, 7);
    ASSERT_TRUE(operands.ok()) << operands.status().message();
    Expected<Output> output = allocate_output(p);
    ASSERT_TRUE(output.ok());
    Buffers buffers = operands->buffers();
    output->attach_to(buffers);
    ASSERT_EQ(run(p, buffers).message(), "ok");
    const Isa isa = make_plan(p)->isa;
    for (const int64_t samples : {0, 10}) {
      const Expected<CheckReport> right = check_result(p, buffers, isa, {samples, 3});
      ASSERT_TRUE(right.ok());
      EXPECT_TRUE(right->passed()) << name_of(type);
      if (samples == 0) {
        EXPECT_EQ(right->picture(), ".....\n.....\n");
      }
    }
    EXPECT_EQ(check_against(p, buffers, buffers, isa)->compared, 17 * 80);
    // The last block of the last row: its sign, or its scale.
    if (type == DataType::kE2M1) {
      output->d_scales.data()[output->d_scales.size() - 1] ^= 0x20;
    } else {
      output->d.data()[output->d.size() - 1] ^= 0x80;
    }
    const Expected<CheckReport> wrong = check_result(p, buffers, isa, {});
    EXPECT_FALSE(wrong->passed());
    EXPECT_EQ(wrong->worst_col / kMapTile, 4) << name_of(type);
  }
}

TEST(CheckResult, UnwrittenOutputFails) {
  Fixture fixture = make(16, 32, 64, DataType::kF16);
  fixture.output.poison();
  const CheckReport report = check(fixture);
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.failed, 16 * 32);
}

// The deliberately corrupted tile: every one of its elements off by a little more than rounding.
TEST(CheckResult, CorruptedTileIsFoundAndMapped) {
  Fixture fixture = make(40, 64, 128, DataType::kF32, 2);
  auto* d = reinterpret_cast<float*>(fixture.output.d.data()) + 1 * 40 * 64;  // batch 1
  for (int64_t row = 16; row < 32; ++row) {
    for (int64_t col = 48; col < 64; ++col) d[row * 64 + col] += 0.001f;
  }
  const CheckReport report = check(fixture);
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.failed, 256);
  EXPECT_EQ(report.picture(), "....\n....\n....\n....\n...X\n....\n");
  EXPECT_EQ(report.worst_batch, 1);
  EXPECT_EQ(report.worst_row / kMapTile, 1);
  EXPECT_EQ(report.worst_col / kMapTile, 3);
  EXPECT_GT(report.worst_share, 1.0);
}

TEST(CheckResult, OneElementIsEnough) {
  Fixture fixture = make(33, 50, 64, DataType::kBF16);
  auto* d = reinterpret_cast<uint16_t*>(fixture.output.d.data());
  d[32 * 50 + 49] ^= 0x8000;  // the sign of the last element
  const CheckReport report = check(fixture);
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.worst_row, 32);
  EXPECT_EQ(report.worst_col, 49);
}

TEST(CheckResult, QuantisedOutputJudgesCodesAndScales) {
  Fixture codes = make(16, 32, 64, DataType::kE2M1);
  codes.output.d.data()[5] ^= 0x77;
  EXPECT_FALSE(check(codes).passed());
  Fixture scales = make(16, 32, 64, DataType::kE2M1);
  scales.output.d_scales.data()[9] ^= 0x10;
  EXPECT_FALSE(check(scales).passed());
}

// One element of every tile is looked at, so a lost tile cannot escape a sample.
TEST(CheckResult, SampleMeetsEveryTile) {
  Fixture fixture = make(48, 64, 64, DataType::kF32);
  const CheckReport right = check(fixture, 12);
  EXPECT_TRUE(right.passed());
  EXPECT_EQ(right.compared, 12);
  EXPECT_EQ(right.picture(), "....\n....\n....\n");
  auto* d = reinterpret_cast<float*>(fixture.output.d.data());
  for (int64_t row = 32; row < 48; ++row) std::fill_n(d + row * 64 + 16, 16, 0.0f);
  const CheckReport wrong = check(fixture, 12);
  EXPECT_FALSE(wrong.passed());
  EXPECT_EQ(wrong.picture(), "....\n....\n.X..\n");
}

TEST(CheckResult, SparseSampleMeetsEveryRowAndColumnOfTiles) {
  const Fixture fixture = make(64, 128, 16, DataType::kF16);  // 4 x 8 tiles
  const CheckReport report = check(fixture, 8);
  EXPECT_GE(report.compared, 8);
  EXPECT_LT(report.compared, 32);
  for (int64_t row = 0; row < 4; ++row) {
    const auto begin = report.map.begin() + row * 8;
    EXPECT_TRUE(std::any_of(begin, begin + 8, [](TileState s) { return s == TileState::kRight; }))
        << row;
  }
  for (int64_t col = 0; col < 8; ++col) {
    bool met = false;
    for (int64_t row = 0; row < 4; ++row)
      met = met || report.map[static_cast<size_t>(row * 8 + col)] == TileState::kRight;
    EXPECT_TRUE(met) << col;
  }
}

TEST(CheckResult, RefusesWhatItCannotJudge) {
  Fixture fixture = make(16, 32, 64, DataType::kF16);
  EXPECT_FALSE(check_result(fixture.problem, fixture.buffers, Isa::kScalar, {-1, 1}).ok());
  fixture.buffers.a = nullptr;
  EXPECT_FALSE(check_result(fixture.problem, fixture.buffers, Isa::kScalar).ok());
}

TEST(CheckReport, LargeMapsShrinkAndKeepTheirWrongTiles) {
  CheckReport report;
  report.map_rows = 200;
  report.map_cols = 300;
  report.map.assign(200 * 300, TileState::kRight);
  report.map[199 * 300 + 299] = TileState::kWrong;
  const std::string picture = report.picture(10, 20);
  EXPECT_EQ(picture.size(), 10u * 21u);
  EXPECT_EQ(picture[picture.size() - 2], 'X');
  EXPECT_EQ(std::count(picture.begin(), picture.end(), 'X'), 1);
}

Output copy_of(const Fixture& fixture) {
  Expected<Output> copy = allocate_output(fixture.problem);
  EXPECT_TRUE(copy.ok());
  std::copy_n(fixture.output.d.data(), fixture.output.d.size(), copy->d.data());
  std::copy_n(fixture.output.d_scales.data(), fixture.output.d_scales.size(),
              copy->d_scales.data());
  return *std::move(copy);
}

TEST(OutputDifference, CountsBitsAndMeasuresDistance) {
  Fixture fixture = make(16, 32, 64, DataType::kF32);
  Output other = copy_of(fixture);
  Buffers actual = fixture.buffers;
  other.attach_to(actual);
  Expected<OutputDifference> difference =
      output_difference(fixture.problem, fixture.buffers, actual);
  ASSERT_TRUE(difference.ok());
  EXPECT_EQ(difference->elements, 512);
  EXPECT_EQ(difference->differing, 0);
  EXPECT_EQ(difference->rel_l2, 0.0);

  auto* d = reinterpret_cast<float*>(other.d.data());
  double norm = 0.0;
  for (int i = 0; i < 512; ++i) norm += static_cast<double>(d[i]) * d[i];
  d[3] += 0.5f;
  d[100] = std::nanf("");
  difference = output_difference(fixture.problem, fixture.buffers, actual);
  ASSERT_TRUE(difference.ok());
  EXPECT_EQ(difference->differing, 2);
  EXPECT_EQ(difference->non_finite, 1);
  EXPECT_NEAR(difference->max_abs, 0.5, 1e-6);
  EXPECT_NEAR(difference->rel_l2, 0.5 / std::sqrt(norm), 1e-3 * 0.5 / std::sqrt(norm) + 1e-3);
}

TEST(CheckAgainst, RoundingPassesAndALostTileFails) {
  Fixture fixture = make(32, 64, 128, DataType::kF32);
  Output other = copy_of(fixture);
  Buffers actual = fixture.buffers;
  other.attach_to(actual);
  auto* d = reinterpret_cast<float*>(other.d.data());
  for (int i = 0; i < 32 * 64; i += 3)
    d[i] = std::nextafterf(d[i], 1e9f);  // another order of adding
  Expected<CheckReport> report =
      check_against(fixture.problem, fixture.buffers, actual, Isa::kScalar);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->passed());
  EXPECT_EQ(report->compared, 32 * 64);

  // Even when only one difference may be shown to the oracle, it is the largest.
  for (int64_t row = 16; row < 32; ++row) std::fill_n(d + row * 64 + 32, 16, 0.0f);
  report = check_against(fixture.problem, fixture.buffers, actual, Isa::kScalar, 1);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->passed());
  EXPECT_EQ(report->worst_row / kMapTile, 1);
  EXPECT_EQ(report->worst_col / kMapTile, 2);
}

TEST(CheckAgainst, NanCountsAsTheLargestDifference) {
  Fixture fixture = make(16, 32, 64, DataType::kF16);
  Output other = copy_of(fixture);
  Buffers actual = fixture.buffers;
  other.attach_to(actual);
  auto* d = reinterpret_cast<uint16_t*>(other.d.data());
  d[0] ^= 1;
  d[77] = 0x7E00;
  const Expected<CheckReport> report =
      check_against(fixture.problem, fixture.buffers, actual, Isa::kScalar, 1);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->passed());
  EXPECT_EQ(report->worst_row * 32 + report->worst_col, 77);
}

}  // namespace
}  // namespace dualgemm::verify
