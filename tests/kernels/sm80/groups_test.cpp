// Groups of experts through the fused kernel: support/grouped.hpp.
#include "kernels/sm80/simulated_run.hpp"
#include "reference/dual_gemm.hpp"
#include "support/grouped.hpp"

namespace dualgemm::test {
namespace {

const std::vector<DataType> kTypes{DataType::kE2M1, DataType::kF16, DataType::kBF16};

TEST(Sm80Groups, EveryWayThatRowsFallToExperts) {
  Rng rng;
  for (const int tile_m : {8, 64, 128}) {
    for (const GroupedCase& one : grouped_cases(kTypes, tile_m, 20, 144, rng)) {
      const bool few = tile_m == 8;  // which take turns: fewer CTAs than tiles, or more
      const SimulatedRun run{.tile_m = tile_m,
                             .k_parts = few ? 8 : 0,
                             .ctas = few ? static_cast<int>(rng.integer(0, 9)) : 0,
                             .misalign = rng.integer(0, 3),
                             .prepared = rng.integer(0, 1) == 1};
      expect_right(
          one, [&](RandomCase& data) { return simulate(data, run); }, rng);
    }
  }
}

TEST(Sm80Groups, RowsByIndex) {
  Rng rng;
  for (const GroupedCase& one : indexed_cases(kTypes, 8, 24, 144, rng)) {
    const SimulatedRun run{.misalign = rng.integer(0, 3)};
    expect_right(
        one, [&](RandomCase& data) { return simulate(data, run); }, rng);
  }
}

TEST(Sm80Groups, WhatTheHostChooses) {
  Rng rng;
  for (const int64_t m : {12, 130}) {
    const Problem p{.m = m, .n = 40, .k = 208, .l = 4, .grouping = Grouping::kContiguous};
    expect_right(
        {swizzled(p), {}}, [](RandomCase& data) { return simulate(data, {}); }, rng);
  }
}

TEST(Sm80Groups, WhatCannotBeIsCut) {
  Rng rng;
  for (int round = 0; round < 12; ++round) {
    Problem p{.m = 40, .n = 9, .k = 48, .l = rng.integer(1, 9)};
    p.a.type = kTypes[static_cast<size_t>(round % 3)];
    const int tile_m = round % 2 == 0 ? 8 : 128;
    expect_cut(
        round % 4 == 0 ? swizzled(p) : p,
        [&](RandomCase& data) { return simulate(data, {.tile_m = tile_m}); }, rng);
  }
}

// Bits as without groups: those of an expert's rows are those of a problem of its own.
TEST(Sm80Groups, SumsAreTheOraclesBitForBit) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    Problem p{.m = 70, .n = 24, .k = 640, .l = 5, .d = {.type = DataType::kF32}};
    p.grouping = grouping;
    p.act.kind = ActivationKind::kIdentity;
    RandomCase data(swizzled(p), rng, Values::kExact);
    ASSERT_TRUE(reference::dual_gemm(data.problem, data.buffers()).ok());
    const std::vector<uint8_t> sums(data.d.data.begin(), data.d.data.end());
    for (const int tile_m : {8, 64, 128}) {
      for (const ptxsim::Schedule schedule : {ptxsim::Schedule::kLazy, ptxsim::Schedule::kRandom}) {
        data.poison_d();
        ASSERT_TRUE(
            simulate(data, {.options = {.schedule = schedule, .strict = true}, .tile_m = tile_m}));
        EXPECT_TRUE(std::equal(sums.begin(), sums.end(), data.d.data.begin())) << tile_m;
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
