// Groups of experts on pairs of CTAs: support/grouped.hpp. Experts with more rows than a tile has
// get more tiles; pairs take several, so that the ring and the accumulator go on from tile to tile,
// or none.
#include "kernels/sm100a_pair_groups/simulated_run.hpp"
#include "reference/dual_gemm.hpp"
#include "support/every_activation.hpp"
#include "support/grouped.hpp"
#include "support/nvfp4_output.hpp"
#include "support/side_by_side.hpp"

namespace dualgemm::test {
namespace {

const std::vector<DataType> kTypes{DataType::kE2M1};

void expect_right_on_pairs(const GroupedCase& one, const PairGroupsRun& wanted, Rng& rng) {
  expect_right(
      one,
      [&](RandomCase& data) {
        PairGroupsRun run = wanted;
        return simulate(data, run);
      },
      rng);
}

// Linear scales are read in place where k is a multiple of 256, else copied. One pair, two or more
// than there are tiles.
void expect_every_way(int64_t k, bool prepared) {
  Rng rng;
  int next = 0;
  for (const GroupedCase& one : grouped_cases(kTypes, 256, 128, k, rng)) {
    constexpr int64_t kCtas[] = {2, 4, 148};
    expect_right_on_pairs(one, {.max_ctas = kCtas[next++ % 3], .prepared = prepared}, rng);
  }
}

TEST(Sm100aPairGroups, EveryWayThatRowsFallToExperts) { expect_every_way(512, false); }
TEST(Sm100aPairGroups, EveryWayThatRowsFallToExpertsWithCopies) { expect_every_way(320, false); }
TEST(Sm100aPairGroups, EveryWayThatRowsFallToExpertsPrepared) { expect_every_way(256, true); }

// Experts end in either CTA of a tile, in each quarter of its rows, and begin anywhere in a scale
// tile, for rows that name their experts, some of them none.
TEST(Sm100aPairGroups, RowsThatNameTheirExperts) {
  Rng rng;
  for (const bool prepared : {false, true}) {
    for (const bool is_swizzled : {false, true}) {
      Problem p{.m = 700, .n = 140, .k = 256, .l = 6, .d = {.type = DataType::kF32}};
      p.grouping = Grouping::kContiguous;
      if (is_swizzled) p = swizzled(p);
      std::vector<int32_t> experts(700, -1);
      const auto give = [&](int from, int to, int expert) {
        std::fill(experts.begin() + from, experts.begin() + to, expert);
      };
      give(3, 4, 5), give(4, 60, 1), give(60, 219, 0), give(230, 497, 3), give(497, 700, 2);
      RandomCase data(p, rng, Values::kRandom, {}, experts);
      add_alphas_and_row_scales(data, rng);
      PairGroupsRun run{.prepared = prepared};
      ASSERT_TRUE(simulate(data, run));
      EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
      EXPECT_TRUE(others_are_poison(data));
    }
  }
}

// A tile of one stage, fewer stages than a ring has, and more; ends of k inside a scale tile.
TEST(Sm100aPairGroups, EndsOfKOverManyTiles) {
  Rng rng;
  int next = 0;
  for (const int64_t k : {16, 64, 336, 256 * 5 + 32, 256 * 9}) {
    for (const bool prepared : {false, true}) {
      const Problem p{.m = 270, .n = 140, .k = k, .l = 3, .grouping = Grouping::kContiguous};
      const bool is_swizzled = next++ / 2 % 2 == 0;
      expect_right_on_pairs({is_swizzled ? swizzled(p) : p, {}},
                            {.max_ctas = 2 + next % 2 * 2, .prepared = prepared}, rng);
    }
  }
}

// More entries of the table than a band of tiles has.
TEST(Sm100aPairGroups, Bands) {
  Rng rng;
  for (const bool prepared : {false, true}) {
    Problem p = swizzled({.m = 75, .n = 300, .k = 64, .l = 40});
    p.grouping = Grouping::kContiguous;
    std::vector<int32_t> offsets{0};
    for (int32_t expert = 0; expert < 40; ++expert)
      offsets.push_back(offsets.back() + (expert % 2 == 0 ? 0 : expert == 7 ? 37 : 2));
    expect_right_on_pairs({p, offsets}, {.max_ctas = 6, .prepared = prepared}, rng);
  }
}

// Up to as many experts as are asked for, of which few have rows.
TEST(Sm100aPairGroups, ManyExperts) {
  Rng rng;
  Problem p = swizzled({.m = 9, .n = 20, .k = 64, .l = 512, .grouping = Grouping::kMasked});
  std::vector<int32_t> rows(512);
  rows[0] = 3, rows[100] = 1, rows[511] = 5;
  expect_right_on_pairs({p, rows}, {.max_ctas = 148}, rng);
}

// What the TMA unit cannot read where it lies is copied before; operands at any address.
TEST(Sm100aPairGroups, CopiesBefore) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    for (const int64_t misalign : {0, 3}) {
      Problem p{.m = 270, .n = 70, .k = 208, .l = 3, .grouping = grouping};
      p.gate.ld = p.k + 10;
      p.up.scale_ld = p.k / 16 + 1;
      if (misalign != 0 && grouping == Grouping::kContiguous) p = swizzled(p);
      expect_right_on_pairs({p, {}}, {.misalign = misalign}, rng);
    }
  }
}

TEST(Sm100aPairGroups, WhatCannotBeIsCut) {
  Rng rng;
  for (int round = 0; round < 6; ++round) {
    const Problem p{.m = rng.integer(20, 400), .n = 33, .k = 128, .l = rng.integer(1, 9)};
    expect_cut(
        round % 2 == 0 ? swizzled(p) : p,
        [&](RandomCase& data) {
          PairGroupsRun run{.prepared = round >= 4};
          return simulate(data, run);
        },
        rng);
  }
}

TEST(Sm100aPairGroups, EveryActivationOutputAndBias) {
  Rng rng;
  int next = 0;
  for (const Activation& act : test::every_activation()) {
    Problem p = swizzled({.m = 140, .n = 150, .k = 320, .l = 2});
    p.grouping = next % 2 == 0 ? Grouping::kContiguous : Grouping::kMasked;
    p.d.type = static_cast<DataType>(1 + next % 3);
    p.act = act;
    p.bias = static_cast<BiasType>(next / 3 % 3);
    expect_right_on_pairs({p, {}}, {.prepared = next++ % 2 == 0}, rng);
  }
}

TEST(Sm100aPairGroups, SideBySide) {
  Rng rng;
  int next = 0;
  for (Problem p : side_by_side_problems(kTypes, 128, 128, 336, rng)) {
    p.grouping = next % 2 == 0 ? Grouping::kContiguous : Grouping::kMasked;
    const bool prepared = next++ % 3 == 0;
    expect_side_by_side(
        p,
        [&](RandomCase& data) {
          PairGroupsRun run{.prepared = prepared};
          return simulate(data, run);
        },
        rng);
  }
}

// Zeros below an expert's last row, of padded tiles of scales, of masked ones, and of one matrix.
TEST(Sm100aPairGroups, Nvfp4IsTheWideOutputQuantized) {
  for (int next = 0; next < 8; ++next) {
    Problem p{.m = 300 - next % 4 * 80, .n = 96 + next % 3 * 48, .k = 272, .l = 3};
    p.grouping = next % 2 == 0 ? Grouping::kContiguous : Grouping::kMasked;
    p.bias = static_cast<BiasType>(next % 3);
    p = with_nvfp4_output(p, next % 3 != 1, next % 3 == 0);
    SCOPED_TRACE(::testing::Message() << "case " << next);
    TwoOutputs both(p);
    both.change([next](RandomCase& data) { make_extreme(data, next); });
    PairGroupsRun run{.prepared = next >= 5};
    ASSERT_TRUE(simulate(both.wide, run));
    ASSERT_TRUE(simulate(both.narrow, run));
    EXPECT_TRUE(both.agree());
  }
}

std::vector<uint8_t> bits_of_d(const RandomCase& data) {
  return {data.d.data.begin(), data.d.data.end()};
}

// Exact products are the oracle's; of any inputs the bits are those of the kernel for few rows, on
// every grid, of prepared weights and of others.
TEST(Sm100aPairGroups, BitsAreThoseOfTheOracleAndOfTheOtherKernel) {
  Rng rng;
  for (const Values values : {Values::kExact, Values::kWide}) {
    Problem p = swizzled({.m = 600, .n = 140, .k = 1536, .l = 4, .d = {.type = DataType::kF32}});
    p.grouping = Grouping::kContiguous;
    if (values == Values::kExact) p.act.kind = ActivationKind::kIdentity;
    RandomCase data(p, rng, values, {0, 17, 17, 400, 600});
    data.poison_d();
    if (values == Values::kExact) {
      ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
    } else {
      ASSERT_TRUE(simulate_few_rows(data, false));
    }
    const std::vector<uint8_t> wanted = bits_of_d(data);
    for (const bool prepared : {false, true}) {
      for (const int64_t ctas : {2, 6, 148}) {
        PairGroupsRun run{.max_ctas = ctas, .prepared = prepared};
        data.poison_d();
        ASSERT_TRUE(simulate(data, run));
        EXPECT_EQ(bits_of_d(data), wanted) << ctas << (prepared ? ", prepared" : "");
      }
    }
  }
}

// NaN in rows of A behind an expert's last one, in scales of theirs, and in the weights of an
// expert without rows: no sum takes them in.
TEST(Sm100aPairGroups, WhatBelongsToNobodyIsNotInD) {
  Rng rng;
  for (const bool is_swizzled : {false, true}) {
    Problem p{.m = 200, .n = 130, .k = 256, .l = 3, .d = {.type = DataType::kF32}};
    p.grouping = Grouping::kMasked;
    RandomCase data(is_swizzled ? swizzled(p) : p, rng, Values::kRandom, {130, 0, 7});
    std::fill(data.a.scales.begin(), data.a.scales.end(), uint8_t{0x7F});
    const ScaleMap map(data.problem.a.scale_layout, p.m, data.resolved.a.sf_cols);
    for (const auto& [expert, rows] : {std::pair{0, 130}, std::pair{2, 7}}) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t col = 0; col < data.resolved.a.sf_cols; ++col)
          data.a.scales[expert * data.resolved.a.scale_batch_stride +
                        (is_swizzled ? map(row, col) : row * data.resolved.a.scale_ld + col)] =
              0x38;
      }
    }
    PairGroupsRun run{};
    data.poison_d();
    ASSERT_TRUE(simulate(data, run));
    EXPECT_TRUE(
        within_bound(data.problem, data.buffers(), reference::Accumulation::kTensorCoreStep));
  }
}

// Each tile's operands once, and nothing for an expert without rows.
TEST(Sm100aPairGroups, OnlyWeightsOfExpertsWithRowsAreRead) {
  Problem p = swizzled({.m = 300, .n = 300, .k = 512, .l = 9, .grouping = Grouping::kMasked});
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {0, 0, 300, 0, 1, 0, 0, 0, 0});
  for (const bool prepared : {false, true}) {
    PairGroupsRun run{.prepared = prepared};
    ASSERT_TRUE(simulate(data, run));
    constexpr uint64_t kTiles = (2 + 1) * 3, kStages = 2;
    constexpr uint64_t kBytes = 2 * (256 * 128 + 3 * 2048);  // of both CTAs
    EXPECT_EQ(run.stats.tma_load_bytes, kTiles * kStages * kBytes);
  }
}

}  // namespace
}  // namespace dualgemm::test
