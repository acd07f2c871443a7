// Groups of experts: support/grouped.hpp. Experts with more rows than a tile has get more tiles;
// CTAs take several, so that rings and both accumulators go on from tile to tile. Weights are
// unpacked, or prepared: one buffer for all experts.
#include "kernels/simulation/results.hpp"
#include "kernels/sm100a_w4a16/simulated_run.hpp"
#include "support/grouped.hpp"
#include "support/nvfp4_output.hpp"
#include "support/side_by_side.hpp"

namespace dualgemm::test {
namespace {

namespace w4a16 = cuda::sm100a_w4a16;

const std::vector<DataType> kTypes{DataType::kF16, DataType::kBF16};
constexpr int kTilesM[] = {32, 64};

SimulateCase simulated_as(const W4a16Run& run) {
  return [run](RandomCase& data) {
    W4a16Run again = run;
    return simulate(data, again);
  };
}

// Linear scales are read in place where rows of them lie 16 bytes apart, else copied.
void expect_every_way(int tile_m, int64_t k, bool prepared) {
  Rng rng;
  int next = 0;
  for (const GroupedCase& one : grouped_cases(kTypes, tile_m, 64, k, rng)) {
    const W4a16Run run{.tile_m = tile_m, .max_ctas = 1 + next++ % 5, .prepared = prepared};
    expect_right(one, simulated_as(run), rng);
  }
}

TEST(Sm100aW4a16Groups, TilesOf32Rows) { expect_every_way(32, 768, false); }
TEST(Sm100aW4a16Groups, TilesOf64Rows) { expect_every_way(64, 576, false); }
TEST(Sm100aW4a16Groups, TilesOf32RowsPrepared) { expect_every_way(32, 576, true); }
TEST(Sm100aW4a16Groups, TilesOf64RowsPrepared) { expect_every_way(64, 512, true); }

// Fewer tiles of k than slots, than stages, and rings that go around within a tile; ends of k
// inside a scale tile; operands that must be copied, at any address.
TEST(Sm100aW4a16Groups, EndsOfKAndCopiesOverManyTiles) {
  Rng rng;
  int next = 0;
  for (const int64_t k : {16, 64, 336, 256 * 5 + 32, 256 * 9, 256 * 17 - 64}) {
    for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
      Problem p{.m = 30, .n = 70, .k = k, .l = 6, .grouping = grouping};
      p.a.type = type_of_rows(next);
      if (next % 3 != 0) p.gate.ld = k + 10;
      if (next % 3 == 1) p.gate.scale_layout = ScaleLayout::kSwizzled128x4;
      p.up.scale_ld = core::round_up(k / 16, 16) + next % 2;
      expect_right({p, {}},
                   simulated_as({.max_ctas = 1 + next % 2,
                                 .misalign = next % 4 == 0 ? 3 : 0,
                                 .prepared = next % 5 == 4}),
                   rng);
      ++next;
    }
  }
}

// Up to as many experts as are asked for, of which few have rows.
TEST(Sm100aW4a16Groups, ManyExperts) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    const bool masked = grouping == Grouping::kMasked;
    Problem p{.m = 9, .n = 20, .k = 64, .l = 512, .grouping = grouping};
    p.a.type = type_of_rows(masked);
    std::vector<int32_t> rows(512);
    rows[0] = 3, rows[100] = 1, rows[511] = 5;
    if (!masked) {
      rows.assign(513, 3);
      rows[0] = 0;
      std::fill(rows.begin() + 101, rows.end(), 4);
      rows[512] = 9;
    }
    expect_right({p, rows}, simulated_as({.prepared = masked}), rng);
  }
}

TEST(Sm100aW4a16Groups, WhatCannotBeIsCut) {
  Rng rng;
  for (int round = 0; round < 6; ++round) {
    Problem p{.m = rng.integer(20, 170), .n = 33, .k = 128, .l = rng.integer(1, 9)};
    p.a.type = type_of_rows(round);
    const W4a16Run run{.tile_m = kTilesM[round % 2], .max_ctas = 5, .prepared = round == 5};
    expect_cut(p, simulated_as(run), rng);
  }
}

// Two products side by side, and D as NVFP4 against D in FP32.
TEST(Sm100aW4a16Groups, SideBySide) {
  Rng rng;
  int next = 0;
  for (Problem p : side_by_side_problems(kTypes, 32, 64, 336, rng)) {
    p.grouping = next % 2 == 0 ? Grouping::kContiguous : Grouping::kMasked;
    const W4a16Run run{.tile_m = kTilesM[++next % 2], .prepared = next % 3 == 0};
    expect_side_by_side(p, simulated_as(run), rng);
  }
}

TEST(Sm100aW4a16Groups, Nvfp4IsTheWideOutputQuantized) {
  int next = 0;
  for (const int tile_m : kTilesM) {
    for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
      Problem p{.m = 3 * tile_m / 2, .n = 48 + next % 3 * 48, .k = 272, .l = 3};
      p.grouping = grouping;
      p.a.type = type_of_rows(next);
      p.bias = static_cast<BiasType>(next % 3);
      p = with_nvfp4_output(p, next % 3 != 1, next % 3 == 0);
      SCOPED_TRACE(::testing::Message() << "tile_m " << tile_m << " case " << next);
      TwoOutputs both(p);
      both.change([next](RandomCase& data) { make_extreme(data, next); });
      W4a16Run run{.tile_m = tile_m, .prepared = next % 2 == 1};
      ASSERT_TRUE(simulate(both.wide, run));
      ASSERT_TRUE(simulate(both.narrow, run));
      EXPECT_TRUE(both.agree());
      ++next;
    }
  }
}

// Every finite scale, every code and products of them that are exact: the oracle's bits.
TEST(Sm100aW4a16Groups, SumsAreTheOraclesBitForBit) {
  Rng rng;
  for (const DataType type : kTypes) {
    for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
      Problem p{.m = 70, .n = 100, .k = 1536, .l = 4, .d = {.type = DataType::kF32}};
      p.grouping = grouping;
      p.a.type = type;
      p.act.kind = ActivationKind::kIdentity;
      p.up.scale_layout = ScaleLayout::kSwizzled128x4;
      RandomCase data(p, rng, Values::kExact);
      ASSERT_TRUE(reference::dual_gemm(data.problem, data.buffers()).ok());
      const std::vector<uint8_t> sums(data.d.data.begin(), data.d.data.end());
      for (const int tile_m : kTilesM) {
        for (const bool prepared : {false, true}) {
          W4a16Run run{.tile_m = tile_m, .prepared = prepared};
          data.poison_d();
          ASSERT_TRUE(simulate(data, run));
          EXPECT_TRUE(std::equal(sums.begin(), sums.end(), data.d.data.begin()))
              << describe(p, run);
        }
      }
    }
  }
}

// Rows of a group have the bits that they have in a batch without groups, whichever tile has them.
TEST(Sm100aW4a16Groups, BitsAreThoseOfTheKernelWithoutGroups) {
  Rng rng;
  for (const DataType type : kTypes) {
    Problem p{.m = 40, .n = 80, .k = 640, .l = 3, .d = {.type = DataType::kF32}};
    p.grouping = Grouping::kMasked;
    p.a.type = type;
    const std::vector<int32_t> rows{17, 0, 40};
    RandomCase data(p, rng, Values::kWide, rows);
    W4a16Run whole{};
    data.problem.grouping = data.resolved.problem.grouping = Grouping::kNone;
    data.expert_rows.clear();
    data.poison_d();
    ASSERT_TRUE(simulate(data, whole));
    const std::vector<uint8_t> bits(data.d.data.begin(), data.d.data.end());
    data.problem = data.resolved.problem = p;
    data.expert_rows = rows;
    for (const int tile_m : kTilesM) {
      W4a16Run run{.tile_m = tile_m, .prepared = tile_m == 32};
      data.poison_d();
      ASSERT_TRUE(simulate(data, run));
      for (int64_t l = 0; l < p.l; ++l) {
        const auto begin = static_cast<ptrdiff_t>(l * data.resolved.d.batch_stride * 4);
        const auto end = begin + rows[static_cast<size_t>(l)] * data.resolved.d.ld * 4;
        EXPECT_TRUE(
            std::equal(bits.begin() + begin, bits.begin() + end, data.d.data.begin() + begin))
            << "tile_m " << tile_m << " expert " << l;
      }
    }
  }
}

// Each tile's operands once, and nothing for an expert without rows.
TEST(Sm100aW4a16Groups, OnlyWeightsOfExpertsWithRowsAreRead) {
  Problem p{.m = 80, .n = 200, .k = 512, .l = 9, .grouping = Grouping::kMasked};
  p.a.type = DataType::kF16;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {0, 0, 65, 0, 1, 0, 0, 0, 0});
  for (const bool prepared : {false, true}) {
    W4a16Run run{.tile_m = 32, .prepared = prepared};
    data.poison_d();
    ASSERT_TRUE(simulate(data, run));
    constexpr uint64_t kTiles = (3 + 1) * 4, kStages = 2;
    constexpr uint64_t kStageBytes = 128 * (128 + 16) + 32 * 512;  // scales in rows, A
    EXPECT_EQ(run.stats.tma_load_bytes, kTiles * kStages * kStageBytes);
  }
}

}  // namespace
}  // namespace dualgemm::test
