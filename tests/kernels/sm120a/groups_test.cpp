// Groups of experts: support/grouped.hpp.
#include "kernels/sm120a/simulated_run.hpp"
#include "reference/dual_gemm.hpp"
#include "support/grouped.hpp"
#include "support/nvfp4_output.hpp"

namespace dualgemm::test {
namespace {

const std::vector<DataType> kTypes{DataType::kE2M1};

::testing::AssertionResult simulate_once(RandomCase& data, SimulatedRun run) {
  return simulate(data, run);
}

TEST(Sm120aGroups, EveryWayThatRowsFallToExperts) {
  Rng rng;
  for (const int tile_m : {8, 16, 64, 128}) {
    for (const GroupedCase& one : grouped_cases(kTypes, tile_m, 20, 144, rng)) {
      const SimulatedRun run{
          .tile_m = tile_m, .misalign = rng.integer(0, 3), .prepared = rng.integer(0, 1) == 1};
      expect_right(
          one, [&](RandomCase& data) { return simulate_once(data, run); }, rng);
    }
  }
}

// The other tiles on few problems: experts that end one row before, at and after a tile's end, an
// empty one, rows that begin inside a tile.
TEST(Sm120aGroups, TilesOf32And256Rows) {
  Rng rng;
  for (const int t : {32, 256}) {
    const Problem contiguous{
        .m = 3 * t + 3, .n = 20, .k = 80, .l = 4, .grouping = Grouping::kContiguous};
    const Problem masked{.m = t + 1, .n = 33, .k = 80, .l = 3, .grouping = Grouping::kMasked};
    const GroupedCase cases[] = {{contiguous, {0, 1, t + 1, t + 1, 3 * t + 3}},
                                 {swizzled(contiguous), {0, t - 1, 2 * t - 1, 3 * t, 3 * t + 3}},
                                 {masked, {t, 1, t + 1}}};
    for (const GroupedCase& one : cases) {
      const SimulatedRun run{.tile_m = t, .prepared = rng.integer(0, 1) == 1};
      expect_right(
          one, [&](RandomCase& data) { return simulate_once(data, run); }, rng);
    }
  }
}

TEST(Sm120aGroups, RowsByIndex) {
  Rng rng;
  for (const int tile_m : {8, 128}) {
    for (const GroupedCase& one : indexed_cases(kTypes, tile_m, 24, 144, rng)) {
      const SimulatedRun run{.tile_m = tile_m, .misalign = rng.integer(0, 3)};
      expect_right(
          one, [&](RandomCase& data) { return simulate_once(data, run); }, rng);
    }
  }
}

TEST(Sm120aGroups, WhatTheHostChooses) {
  Rng rng;
  for (const int64_t m : {12, 130, 600}) {
    const Problem p{.m = m, .n = 72, .k = 208, .l = 4, .grouping = Grouping::kContiguous};
    expect_right(
        {swizzled(p), {}}, [](RandomCase& data) { return simulate_once(data, {}); }, rng);
  }
}

TEST(Sm120aGroups, WhatCannotBeIsCut) {
  Rng rng;
  for (int round = 0; round < 12; ++round) {
    const Problem p{.m = 40, .n = 9, .k = 48, .l = rng.integer(1, 9)};
    const int tile_m = round % 2 == 0 ? 8 : 64;
    expect_cut(
        round % 4 == 0 ? swizzled(p) : p,
        [&](RandomCase& data) { return simulate_once(data, {.tile_m = tile_m}); }, rng);
  }
}

TEST(Sm120aGroups, Nvfp4IsTheWideOutputQuantized) {
  int next = 0;
  for (const int tile_m : {8, 32, 128}) {
    for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
      Problem p{.m = 3 * tile_m / 2, .n = 48 + next % 3 * 48, .k = 272, .l = 3};
      p.grouping = grouping;
      p.bias = static_cast<BiasType>(next % 3);
      p = with_nvfp4_output(p, next % 3 != 1, next % 3 == 0);
      SCOPED_TRACE(::testing::Message() << "tile_m " << tile_m << " case " << next);
      TwoOutputs both(p);
      both.change([next](RandomCase& data) { make_extreme(data, next); });
      const SimulatedRun run{.tile_m = tile_m};
      ASSERT_TRUE(simulate_once(both.wide, run));
      ASSERT_TRUE(simulate_once(both.narrow, run));
      EXPECT_TRUE(both.agree());
      ++next;
    }
  }
}

// Bits as without groups: those of an expert's rows are those of a problem of its own.
TEST(Sm120aGroups, SumsAreTheOraclesBitForBit) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    Problem p{.m = 70, .n = 72, .k = 640, .l = 5, .d = {.type = DataType::kF32}};
    p.grouping = grouping;
    p.act.kind = ActivationKind::kIdentity;
    RandomCase data(swizzled(p), rng, Values::kExact);
    ASSERT_TRUE(reference::dual_gemm(data.problem, data.buffers()).ok());
    const std::vector<uint8_t> sums(data.d.data.begin(), data.d.data.end());
    for (const int tile_m : {8, 64, 128}) {
      for (const ptxsim::Schedule schedule : {ptxsim::Schedule::kLazy, ptxsim::Schedule::kRandom}) {
        data.poison_d();
        ASSERT_TRUE(simulate_once(
            data, {.options = {.schedule = schedule, .strict = true}, .tile_m = tile_m}));
        EXPECT_TRUE(std::equal(sums.begin(), sums.end(), data.d.data.begin())) << tile_m;
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
