// Groups of experts: support/grouped.hpp. Experts with more rows than a tile has get more tiles;
// CTAs take several, so that the ring and both accumulators go on from tile to tile.
#include "kernels/sm100a_skinny/simulated_run.hpp"
#include "reference/dual_gemm.hpp"
#include "support/grouped.hpp"
#include "support/nvfp4_output.hpp"
#include "support/side_by_side.hpp"

namespace dualgemm::test {
namespace {

namespace skinny = cuda::sm100a_skinny;

const std::vector<DataType> kTypes{DataType::kE2M1};
constexpr int kTilesM[] = {16, 32, 64, 128};

// Linear scales are read in place where k is a multiple of 256, else copied.
void expect_every_way(int tile_m, int64_t k) {
  Rng rng;
  int next = 0;
  for (const GroupedCase& one : grouped_cases(kTypes, tile_m, 64, k, rng)) {
    const int64_t ctas = 1 + next++ % 5;
    expect_right(
        one,
        [&](RandomCase& data) {
          SkinnyRun run{.tile_m = tile_m, .max_ctas = ctas};
          return simulate(data, run);
        },
        rng);
  }
}

TEST(Sm100aSkinnyGroups, TilesOf16Rows) { expect_every_way(16, 768); }
TEST(Sm100aSkinnyGroups, TilesOf32Rows) { expect_every_way(32, 576); }
TEST(Sm100aSkinnyGroups, TilesOf64Rows) { expect_every_way(64, 512); }
TEST(Sm100aSkinnyGroups, TilesOf128Rows) { expect_every_way(128, 768); }

// Fewer tiles of k than warps that mix, than stages, and rings that go around within a tile; ends
// of k inside a scale tile, for which scales of A are copied.
TEST(Sm100aSkinnyGroups, EndsOfKOverManyTiles) {
  Rng rng;
  for (const int64_t k : {16, 64, 336, 256 * 5 + 32, 256 * 9, 256 * 17 - 64}) {
    for (const bool is_swizzled : {false, true}) {
      const Problem p{.m = 30, .n = 70, .k = k, .l = 6, .grouping = Grouping::kContiguous};
      expect_right(
          {is_swizzled ? swizzled(p) : p, {}},
          [&](RandomCase& data) {
            SkinnyRun run{.tile_m = 16, .max_ctas = is_swizzled ? 2 : 1};
            return simulate(data, run);
          },
          rng);
    }
  }
}

// Up to as many experts as are asked for, of which few have rows.
TEST(Sm100aSkinnyGroups, ManyExperts) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    Problem p = swizzled({.m = 9, .n = 20, .k = 64, .l = 512, .grouping = grouping});
    std::vector<int32_t> rows(512);
    rows[0] = 3, rows[100] = 1, rows[511] = 5;
    if (grouping == Grouping::kContiguous) {
      rows.assign(513, 3);
      rows[0] = 0;
      std::fill(rows.begin() + 101, rows.end(), 4);
      rows[512] = 9;
    }
    expect_right(
        {p, rows},
        [&](RandomCase& data) {
          SkinnyRun run{.tile_m = 16};
          return simulate(data, run);
        },
        rng);
  }
}

// What the TMA unit cannot read where it lies is copied before; operands at any address.
TEST(Sm100aSkinnyGroups, CopiesBefore) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    for (const int64_t misalign : {0, 3}) {
      Problem p{.m = 60, .n = 70, .k = 208, .l = 3, .grouping = grouping};
      p.gate.ld = p.k + 10;
      p.up.scale_ld = p.k / 16 + 1;
      if (misalign != 0 && grouping == Grouping::kContiguous) p = swizzled(p);
      expect_right(
          {p, {}},
          [&](RandomCase& data) {
            SkinnyRun run{.tile_m = 32, .misalign = misalign};
            return simulate(data, run);
          },
          rng);
    }
  }
}

TEST(Sm100aSkinnyGroups, WhatCannotBeIsCut) {
  Rng rng;
  for (int round = 0; round < 10; ++round) {
    const Problem p{.m = rng.integer(20, 170), .n = 33, .k = 128, .l = rng.integer(1, 9)};
    expect_cut(
        round % 2 == 0 ? swizzled(p) : p,
        [&](RandomCase& data) {
          SkinnyRun run{.tile_m = kTilesM[round % 4], .max_ctas = 5};
          return simulate(data, run);
        },
        rng);
  }
}

// Two products side by side, and D as NVFP4 against D in FP32.
TEST(Sm100aSkinnyGroups, SideBySide) {
  Rng rng;
  int next = 0;
  for (Problem p : side_by_side_problems(kTypes, 32, 64, 336, rng)) {
    p.grouping = next % 2 == 0 ? Grouping::kContiguous : Grouping::kMasked;
    const int tile_m = kTilesM[++next % 4];
    expect_side_by_side(
        p,
        [&](RandomCase& data) {
          SkinnyRun run{.tile_m = tile_m};
          return simulate(data, run);
        },
        rng);
  }
}

TEST(Sm100aSkinnyGroups, Nvfp4IsTheWideOutputQuantized) {
  int next = 0;
  for (const int tile_m : kTilesM) {
    for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
      Problem p{.m = 3 * tile_m / 2, .n = 48 + next % 3 * 48, .k = 272, .l = 3};
      p.grouping = grouping;
      p.bias = static_cast<BiasType>(next % 3);
      p = with_nvfp4_output(p, next % 3 != 1, next % 3 == 0);
      SCOPED_TRACE(::testing::Message() << "tile_m " << tile_m << " case " << next);
      TwoOutputs both(p);
      both.change([next](RandomCase& data) { make_extreme(data, next); });
      SkinnyRun run{.tile_m = tile_m};
      ASSERT_TRUE(simulate(both.wide, run));
      ASSERT_TRUE(simulate(both.narrow, run));
      EXPECT_TRUE(both.agree());
      ++next;
    }
  }
}

TEST(Sm100aSkinnyGroups, SumsAreTheOraclesBitForBit) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    Problem p{.m = 70, .n = 100, .k = 1536, .l = 4, .d = {.type = DataType::kF32}};
    p.grouping = grouping;
    p.act.kind = ActivationKind::kIdentity;
    p.up.scale_layout = ScaleLayout::kSwizzled128x4;
    RandomCase data(grouping == Grouping::kMasked ? swizzled(p) : p, rng, Values::kExact);
    ASSERT_TRUE(reference::dual_gemm(data.problem, data.buffers()).ok());
    const std::vector<uint8_t> sums(data.d.data.begin(), data.d.data.end());
    for (const int tile_m : kTilesM) {
      SkinnyRun run{.tile_m = tile_m};
      data.poison_d();
      ASSERT_TRUE(simulate(data, run));
      EXPECT_TRUE(std::equal(sums.begin(), sums.end(), data.d.data.begin())) << tile_m;
    }
  }
}

// Rows of a group have the bits that they have in a batch without groups, whichever tile has them.
TEST(Sm100aSkinnyGroups, BitsAreThoseOfTheKernelWithoutGroups) {
  Rng rng;
  Problem p = swizzled({.m = 40, .n = 80, .k = 640, .l = 3, .d = {.type = DataType::kF32}});
  p.grouping = Grouping::kMasked;
  const std::vector<int32_t> rows{17, 0, 40};
  RandomCase data(p, rng, Values::kWide, rows);
  SkinnyRun whole{};
  data.problem.grouping = data.resolved.problem.grouping = Grouping::kNone;
  data.expert_rows.clear();
  data.poison_d();
  ASSERT_TRUE(simulate(data, whole));
  const std::vector<uint8_t> bits(data.d.data.begin(), data.d.data.end());
  data.problem = data.resolved.problem = p;
  data.expert_rows = rows;
  for (const int tile_m : kTilesM) {
    SkinnyRun run{.tile_m = tile_m};
    data.poison_d();
    ASSERT_TRUE(simulate(data, run));
    for (int64_t l = 0; l < p.l; ++l) {
      const auto begin = static_cast<ptrdiff_t>(l * data.resolved.d.batch_stride * 4);
      const auto end = begin + rows[static_cast<size_t>(l)] * data.resolved.d.ld * 4;
      EXPECT_TRUE(std::equal(bits.begin() + begin, bits.begin() + end, data.d.data.begin() + begin))
          << "tile_m " << tile_m << " expert " << l;
    }
  }
}

// Each tile's operands once, and nothing for an expert without rows.
TEST(Sm100aSkinnyGroups, OnlyWeightsOfExpertsWithRowsAreRead) {
  Problem p = swizzled({.m = 40, .n = 200, .k = 512, .l = 9, .grouping = Grouping::kMasked});
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {0, 0, 33, 0, 1, 0, 0, 0, 0});
  SkinnyRun run{.tile_m = 16};
  ASSERT_TRUE(simulate(data, run));
  constexpr uint64_t kTiles = (3 + 1) * 4, kStages = 2;
  const uint64_t stage_bytes = static_cast<uint64_t>(instance_of(p, run).stage_bytes);
  EXPECT_EQ(run.stats.tma_load_bytes, kTiles * kStages * (stage_bytes - 2048));
}

}  // namespace
}  // namespace dualgemm::test
