// Combine::kSideBySide and rows that name their experts: exact inputs bit for bit as the oracle has
// them, random ones within the bound, the same bits from every strategy and instruction set.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/problem.hpp"
#include "core/scale_padding.hpp"
#include "support/bound.hpp"
#include "support/factors.hpp"
#include "support/grouped.hpp"
#include "support/side_by_side.hpp"
#include "unit/cpu/run.hpp"

namespace dualgemm::test {
namespace {

constexpr DataType kEveryTypeOfD[] = {DataType::kE2M1, DataType::kF16, DataType::kBF16,
                                      DataType::kF32};
constexpr StrategyId kSideBySideStrategies[] = {
    StrategyId::kTwoPass, StrategyId::kCached,        StrategyId::kGraph,
    StrategyId::kStreams, StrategyId::kFusedEpilogue, StrategyId::kFusedSequential,
    StrategyId::kFused,
};

std::vector<uint8_t> bytes_of_run(RandomCase& c, const RunOptions& options) {
  c.poison_d();
  const RunResult result = run_cpu(c.problem, c.buffers(), options);
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  return output_bytes(c);
}

std::vector<uint8_t> bytes_of_oracle(RandomCase& c) {
  c.poison_d();
  EXPECT_TRUE(reference::dual_gemm(c.problem, c.buffers()).ok());
  core::clear_scale_padding(c.resolved, c.buffers());
  return output_bytes(c);
}

class SideBySide : public ::testing::TestWithParam<Isa> {};

TEST_P(SideBySide, ExactInputsGiveTheOraclesBits) {
  Rng rng;
  for (const int64_t n : kEdgesOfN) {
    for (const DataType d : kEveryTypeOfD) {
      const Problem p = without_activation(random_side_by_side(rng, n, d));
      RandomCase c = side_by_side_case(p, rng, Values::kExact);
      SCOPED_TRACE(describe_side_by_side(c));
      const auto expected = bytes_of_oracle(c);
      ASSERT_EQ(bytes_of_run(c, {.isa = GetParam()}), expected);
      ASSERT_EQ(bytes_of_run(c, {.isa = GetParam(), .prepared = true}), expected) << "prepared";
      if (!c.problem.residual) continue;
      c.in_place = true;
      const auto in_place = bytes_of_run(c, {.isa = GetParam()});
      EXPECT_TRUE(others_are_poison(c));
      ASSERT_EQ(bytes_of_oracle(c), in_place) << "in place";
    }
  }
}

TEST_P(SideBySide, RandomInputsStayWithinTheBound) {
  Rng rng;
  for (const int64_t n : kEdgesOfN) {
    for (const DataType d : kEveryTypeOfD) {
      RandomCase c = side_by_side_case(random_side_by_side(rng, n, d), rng, Values::kRandom);
      if (rng.chance(0.5)) add_alphas_and_row_scales(c, rng);
      SCOPED_TRACE(describe_side_by_side(c));
      c.in_place = c.problem.residual && rng.chance(0.5);
      bytes_of_run(c, {.isa = GetParam()});
      EXPECT_TRUE(others_are_poison(c));
      c.in_place = false;
      ASSERT_TRUE(within_bound(c.problem, c.buffers(), GetParam()));
    }
  }
}

// One column of each part, and one row, that somebody forgets.
TEST_P(SideBySide, ALostElementIsSeen) {
  Rng rng;
  Problem p{.m = 9, .n = 33, .k = 64, .combine = Combine::kSideBySide, .up_column = 31};
  p.d.type = DataType::kF32;
  RandomCase c(p, rng, Values::kRandom);
  for (const int64_t col : {int64_t{0}, int64_t{30}, int64_t{31}, int64_t{63}}) {
    bytes_of_run(c, {.isa = GetParam()});
    ASSERT_TRUE(within_bound(p, c.buffers(), GetParam()));
    store_element(c.d.data.data(), DataType::kF32, 4 * 64 + col, 0.0f);
    EXPECT_FALSE(within_bound(p, c.buffers(), GetParam())) << col;
  }
}

INSTANTIATE_TEST_SUITE_P(AllIsas, SideBySide, ::testing::ValuesIn(isas()), isa_name);

TEST(SideBySideBits, InstructionSetsStrategiesThreadsAndPreparation) {
  Rng rng;
  for (int round = 0; round < 12; ++round) {
    const Problem p = random_side_by_side(rng, rng.pick(kEdgesOfN), kEveryTypeOfD[round % 4]);
    RandomCase c = side_by_side_case(p, rng, Values::kRandom);
    SCOPED_TRACE(describe_side_by_side(c));
    const auto expected = bytes_of_run(c, {.isa = Isa::kScalar, .threads = 1});
    for (const Isa isa : isas()) {
      if (!core::has_shared_order(p, isa)) continue;
      for (const StrategyId strategy : kSideBySideStrategies) {
        ASSERT_EQ(bytes_of_run(c, {.isa = isa, .strategy = strategy, .threads = 3}), expected)
            << name_of(isa) << " " << name_of(strategy);
        if (strategy == StrategyId::kTwoPass) continue;  // converts on every call
        ASSERT_EQ(bytes_of_run(c, {.isa = isa, .strategy = strategy, .prepared = true}), expected)
            << name_of(isa) << " " << name_of(strategy) << " prepared";
      }
    }
  }
}

// Rows that name their experts are the rows of offsets, for both combinations and for fp8.
TEST(RowExperts, AreTheRowsOfOffsets) {
  Rng rng;
  for (const StrategyId strategy : {StrategyId::kFused, StrategyId::kTwoPass, StrategyId::kFp8}) {
    for (const Combine combine : {Combine::kGlu, Combine::kSideBySide}) {
      Problem p{.m = 23, .n = 32, .k = 80, .l = 4, .grouping = Grouping::kContiguous};
      p.combine = combine;
      p.d.type = DataType::kF32;
      RandomCase c(p, rng, Values::kRandom, {0, 9, 9, 14, 23});
      for (const Isa isa : isas()) {
        const auto expected = bytes_of_run(c, {.isa = isa, .strategy = strategy});
        Buffers b = c.buffers();
        b.expert_offsets = nullptr;
        std::vector<int32_t> rows;
        for (int64_t row = 0; row < p.m; ++row) rows.push_back(row < 9 ? 0 : row < 14 ? 2 : 3);
        b.row_experts = rows.data();
        c.poison_d();
        ASSERT_TRUE(run_cpu(p, b, {.isa = isa, .strategy = strategy}).status.ok());
        EXPECT_EQ(output_bytes(c), expected)
            << name_of(isa) << " " << name_of(strategy) << " " << name_of(combine);
      }
    }
  }
}

// More runs than experts, up to one for each row, and scales of A that begin anywhere in a tile.
TEST(RowExperts, AnyOrderOfRowsAndSwizzledScales) {
  Rng rng;
  for (const Isa isa : isas()) {
    for (const int64_t m : {1, 7, 130, 300}) {
      Problem p{.m = m, .n = 32, .k = 144, .l = 3, .grouping = Grouping::kContiguous};
      p.a.scale_layout = ScaleLayout::kSwizzled128x4;
      p.d = {.type = DataType::kE2M1, .scale_layout = ScaleLayout::kSwizzled128x4};
      std::vector<int32_t> rows = random_row_experts(rng, p.l, m);
      if (m == 130)
        for (int64_t row = 0; row < m; ++row) rows[static_cast<size_t>(row)] = row % 4 - 1;
      RandomCase c(p, rng, Values::kRandom, {}, rows);
      c.poison_d();
      const RunResult result = run_cpu(p, c.buffers(), {.isa = isa, .threads = 3});
      ASSERT_TRUE(result.status.ok()) << result.status.message();
      EXPECT_TRUE(within_bound(p, c.buffers(), isa)) << name_of(isa) << " m " << m;
      EXPECT_TRUE(others_are_poison(c));
      // Padding is 0, the scales of rows of no expert and what lies beside them are as they were.
      const ScaleMap map = c.resolved.d.scale_map();
      const bool any = std::any_of(rows.begin(), rows.end(),
                                   [&](int32_t expert) { return expert >= 0 && expert < p.l; });
      for (int64_t i = 0; i < c.d.scales.size(); ++i) {
        const auto at = map.inverse(i);
        if (at.row >= m) {
          ASSERT_EQ(c.d.scales[i], any ? 0 : kPoison) << i;
          continue;
        }
        const int32_t expert = rows[static_cast<size_t>(at.row)];
        const bool nobodys = expert < 0 || expert >= p.l;
        ASSERT_EQ(c.d.scales[i] == kPoison, nobodys) << at.row;
        if (at.is_padding && !nobodys) {
          ASSERT_EQ(c.d.scales[i], 0) << i;
        }
      }
    }
  }
}

TEST(RowExperts, NobodysRowsWriteNothing) {
  Rng rng;
  Problem p{.m = 6, .n = 16, .k = 32, .l = 2, .grouping = Grouping::kContiguous};
  RandomCase c(p, rng, Values::kRandom, {}, {-1, -1, 2, 2, INT32_MIN, INT32_MAX});
  bytes_of_run(c, {});
  EXPECT_TRUE(c.d.data.all_bytes(kPoison));
}

}  // namespace
}  // namespace dualgemm::test
