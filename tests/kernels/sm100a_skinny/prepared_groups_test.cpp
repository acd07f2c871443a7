// Groups of experts with prepared weights, one buffer for all of them: as groups_test.cpp has
// unpacked ones.
#include "kernels/simulation/results.hpp"
#include "kernels/sm100a_skinny/simulated_run.hpp"
#include "support/grouped.hpp"
#include "support/nvfp4_output.hpp"
#include "support/side_by_side.hpp"

namespace dualgemm::test {
namespace {

SkinnyRun prepared_groups(int tile_m, int64_t max_ctas = 3, int64_t misalign = 0) {
  return {.tile_m = tile_m, .max_ctas = max_ctas, .misalign = misalign, .prepared = true};
}

void expect_prepared_right(const GroupedCase& one, const SkinnyRun& run, Rng& rng) {
  expect_right(
      one,
      [&](RandomCase& data) {
        SkinnyRun again = run;
        return simulate(data, again);
      },
      rng);
}

// Every way that rows fall to experts, empty ones among them; linear and swizzled scales of A.
TEST(Sm100aSkinnyPreparedGroups, EveryWayThatRowsFallToExperts) {
  Rng rng;
  int next = 0;
  for (const auto& [tile_m, k] :
       {std::pair{16, 768}, std::pair{32, 576}, std::pair{64, 320}, std::pair{128, 512}}) {
    for (const GroupedCase& one : grouped_cases({DataType::kE2M1}, tile_m, 64, k, rng))
      expect_prepared_right(one, prepared_groups(tile_m, 1 + next++ % 5), rng);
  }
}

TEST(Sm100aSkinnyPreparedGroups, EndsOfKAndMisalignedOperands) {
  Rng rng;
  int next = 0;
  for (const int64_t k : {16, 64, 336, 256 * 5 + 32, 256 * 9, 256 * 17 - 64}) {
    for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
      Problem p{.m = 30, .n = 70, .k = k, .l = 6, .grouping = grouping};
      p.gate.ld = k + 10;  // prepared weights are not read where they lay
      p.up.scale_ld = k / 16 + 1;
      expect_prepared_right({next % 2 == 0 ? swizzled(p) : p, {}},
                            prepared_groups(16, 1 + next % 2, next % 3 == 0 ? 3 : 0), rng);
      ++next;
    }
  }
}

TEST(Sm100aSkinnyPreparedGroups, WhatCannotBeIsCut) {
  Rng rng;
  for (int round = 0; round < 4; ++round) {
    const Problem p{.m = rng.integer(20, 170), .n = 33, .k = 128, .l = rng.integer(1, 9)};
    expect_cut(
        round % 2 == 0 ? swizzled(p) : p,
        [&](RandomCase& data) {
          SkinnyRun run = prepared_groups(16 << round, 5);
          return simulate(data, run);
        },
        rng);
  }
}

TEST(Sm100aSkinnyPreparedGroups, SideBySide) {
  Rng rng;
  int next = 0;
  for (Problem p : side_by_side_problems({DataType::kE2M1}, 32, 64, 336, rng)) {
    p.grouping = next % 2 == 0 ? Grouping::kContiguous : Grouping::kMasked;
    const int tile_m = 16 << next++ % 4;
    expect_side_by_side(
        p,
        [&](RandomCase& data) {
          SkinnyRun run = prepared_groups(tile_m);
          return simulate(data, run);
        },
        rng);
  }
}

TEST(Sm100aSkinnyPreparedGroups, Nvfp4IsTheWideOutputQuantized) {
  int next = 0;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    Problem p{.m = 50, .n = 96, .k = 272, .l = 3, .grouping = grouping};
    p = with_nvfp4_output(p, next % 2 == 0, next % 2 == 1);
    TwoOutputs both(p);
    both.change([next](RandomCase& data) { make_extreme(data, next); });
    SkinnyRun run = prepared_groups(next++ == 0 ? 16 : 64);
    ASSERT_TRUE(simulate(both.wide, run));
    ASSERT_TRUE(simulate(both.narrow, run));
    EXPECT_TRUE(both.agree());
  }
}

// Exact products are the oracle's; of any inputs the bits are those of unpacked weights.
TEST(Sm100aSkinnyPreparedGroups, BitsAreThoseOfTheOracleAndOfUnpackedWeights) {
  Rng rng;
  for (const Values values : {Values::kExact, Values::kWide}) {
    Problem p = swizzled({.m = 70, .n = 100, .k = 1536, .l = 4, .d = {.type = DataType::kF32}});
    p.grouping = Grouping::kContiguous;
    if (values == Values::kExact) p.act.kind = ActivationKind::kIdentity;
    RandomCase data(p, rng, values, {0, 17, 17, 69, 70});
    const auto bits_of = [&](const SkinnyRun& wanted) {
      SkinnyRun run = wanted;
      data.poison_d();
      EXPECT_TRUE(simulate(data, run));
      return std::vector<uint8_t>(data.d.data.begin(), data.d.data.end());
    };
    std::vector<uint8_t> wanted = bits_of({.tile_m = 16});
    if (values == Values::kExact) {
      data.poison_d();
      ASSERT_TRUE(reference::dual_gemm(data.problem, data.buffers()).ok());
      wanted.assign(data.d.data.begin(), data.d.data.end());
    }
    for (const int tile_m : {16, 32, 64, 128})
      EXPECT_EQ(wanted, bits_of(prepared_groups(tile_m))) << tile_m;
  }
}

// Each tile's operands once, and nothing for an expert without rows.
TEST(Sm100aSkinnyPreparedGroups, OnlyWeightsOfExpertsWithRowsAreRead) {
  Problem p = swizzled({.m = 40, .n = 200, .k = 512, .l = 9, .grouping = Grouping::kMasked});
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {0, 0, 33, 0, 1, 0, 0, 0, 0});
  SkinnyRun run = prepared_groups(16);
  ASSERT_TRUE(simulate(data, run));
  constexpr uint64_t kTiles = (3 + 1) * 4, kStages = 2;
  constexpr uint64_t kStageBytes = 128 * (128 + 16) + 16 * 128 + 4 * 512;  // weights, A, its scales
  EXPECT_EQ(run.stats.tma_load_bytes, kTiles * kStages * kStageBytes);
}

// Several tiles for each of two CTAs.
TEST(Sm100aSkinnyPreparedGroups, TheSameInEverySchedule) {
  using ptxsim::Schedule;
  for (const int64_t k : {256 * 3 - 64, 256 * 9}) {
    Problem p{.m = 70, .n = 80, .k = k, .l = 4, .d = {.type = DataType::kF32}};
    p.grouping = Grouping::kContiguous;
    Rng rng;
    RandomCase data(p, rng, Values::kWide, {0, 36, 36, 67, 70});
    SkinnyRun eager = prepared_groups(16, 2);
    data.poison_d();
    ASSERT_TRUE(simulate(data, eager));
    const std::vector<uint8_t> bits(data.d.data.begin(), data.d.data.end());
    for (const Schedule schedule : {Schedule::kLazy, Schedule::kRandom}) {
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        SkinnyRun run = prepared_groups(16, 2);
        run.options.schedule = schedule;
        run.options.seed = seed;
        data.poison_d();
        ASSERT_TRUE(simulate(data, run)) << describe(run.options);
        ASSERT_TRUE(std::equal(bits.begin(), bits.end(), data.d.data.begin()))
            << describe(run.options);
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
