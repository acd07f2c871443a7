// Groups of experts through the kernel for few rows: support/grouped.hpp. Experts with
// more rows than a tile has get more tiles.
#include "kernels/sm90a_skinny/simulated_run.hpp"
#include "reference/dual_gemm.hpp"
#include "support/grouped.hpp"

namespace dualgemm::test {
namespace {

const std::vector<DataType> kTypes{DataType::kE2M1, DataType::kF16, DataType::kBF16};

TEST(Sm90aSkinnyGroups, EveryWayThatRowsFallToExperts) {
  Rng rng;
  int64_t next = 0;
  for (const bool prepared : {false, true}) {
    for (const int64_t cols : {16, 32}) {
      for (const GroupedCase& one : grouped_cases(kTypes, 8, cols, 448, rng)) {
        const int64_t ctas = 1 + ++next % 5;
        expect_right(
            one,
            [&](RandomCase& data) {
              return simulate(data, {.cols = cols, .max_ctas = ctas, .prepared = prepared});
            },
            rng);
      }
    }
  }
}

TEST(Sm90aSkinnyGroups, RowsByIndex) {
  Rng rng;
  for (const bool prepared : {false, true}) {
    for (const GroupedCase& one : indexed_cases(kTypes, 8, 32, 448, rng)) {
      expect_right(
          one,
          [&](RandomCase& data) {
            return simulate(data, {.cols = 32, .max_ctas = 3, .prepared = prepared});
          },
          rng);
    }
  }
}

// A CTA keeps the index of so many rows, of more it is read where it lies; an index beyond A's rows
// is cut to the last one. Experts' tiles are found by the CTA, or stand in a table. Rows enough
// beyond what is kept would run into barriers.
TEST(Sm90aSkinnyGroups, IndexThatACtaKeepsOrReads) {
  Rng rng;
  int next = 0;
  for (const bool prepared : {false, true}) {
    cuda::sm90a_skinny::Config config = cuda::sm90a_skinny::group_instances().front().config;
    config.prepared = prepared;
    const int64_t kept = cuda::sm90a_skinny::kept_rows(config);
    for (const int64_t m : {int64_t{150}, kept, kept + 1, kept + 4000}) {
      for (const int64_t l : {3, 1030}) {
        if (prepared && l > 100) continue;  // as many weights as that take long to pack
        Problem p{.m = m, .n = 24, .k = 128, .l = l, .grouping = Grouping::kContiguous};
        p.a.type = kTypes[static_cast<size_t>(++next % 3)];
        p.a_rows = 37;
        SCOPED_TRACE(::testing::Message() << "m " << m << " l " << l << " prepared " << prepared);
        RandomCase data(p, rng, Values::kRandom);
        expect_index_cut(data, [&](RandomCase& one) {
          return simulate(one, {.cols = 16, .max_ctas = 3, .prepared = prepared});
        });
      }
    }
  }
}

// Rings go on from tile to tile, with k-tiles and chunks for some warps only, and for all.
TEST(Sm90aSkinnyGroups, EndsOfKOverManyTiles) {
  Rng rng;
  for (const int64_t k : {64, 320, 4096 + 64}) {
    for (const bool prepared : {false, true}) {
      Problem p{.m = 30, .n = 70, .k = k, .l = 6, .grouping = Grouping::kContiguous};
      p.a.type = kTypes[static_cast<size_t>(rng.integer(0, 2))];
      expect_right(
          {k == 320 ? p : swizzled(p), {}},
          [&](RandomCase& data) { return simulate(data, {.prepared = prepared}); }, rng);
    }
  }
}

size_t launches_of(RandomCase& data) {
  namespace skinny = cuda::sm90a_skinny;
  const skinny::Instance& instance = skinny::choose_instance(data.problem, 3, false);
  Simulation simulation(data, 0);
  void* const workspace =
      simulation.scratch("workspace", skinny::workspace_bytes(data.problem, instance));
  const auto launches =
      skinny::build_launches(data.resolved, simulation.buffers(), workspace, instance, 3, nullptr);
  return launches ? launches->size() : 0;
}

// CTAs find so many experts' tiles by themselves, of one more a table comes first: the most
// experts, the most tiles that there may be, and the most rows that name their experts.
TEST(Sm90aSkinnyGroups, TilesThatACtaFindsOrATableHas) {
  struct Case {
    Grouping grouping;
    int64_t m, l;
    bool named;
    size_t launches;
  };
  constexpr Grouping kContiguous = Grouping::kContiguous, kMasked = Grouping::kMasked;
  Rng rng;
  int next = 0;
  for (const Case& one :
       {Case{kContiguous, 40, 512, false, 1}, Case{kContiguous, 40, 1024, false, 1},
        Case{kContiguous, 40, 1025, false, 2}, Case{kContiguous, 700, 700, false, 1},
        Case{kContiguous, 8178, 3, false, 1}, Case{kContiguous, 8179, 3, false, 2},
        Case{kContiguous, 1024, 30, true, 1}, Case{kContiguous, 1025, 30, true, 2},
        Case{kContiguous, 9, 2000, true, 2}, Case{kMasked, 1, 1024, false, 1},
        Case{kMasked, 1, 1025, false, 2}, Case{kMasked, 16, 512, false, 1},
        Case{kMasked, 17, 512, false, 2}}) {
    Problem p{.m = one.m, .n = 16, .k = 64, .l = one.l, .grouping = one.grouping};
    p.a.type = kTypes[static_cast<size_t>(++next % 3)];
    SCOPED_TRACE(::testing::Message() << name_of(p.grouping) << " m " << p.m << " l " << p.l);
    std::vector<int32_t> experts, owners;
    if (one.named) owners = random_row_experts(rng, p.l, p.m);
    if (p.grouping == kMasked) {  // the last expert has all rows, few others have any
      experts.assign(static_cast<size_t>(p.l), 0);
      for (int i = 0; i < 20; ++i) experts[static_cast<size_t>(rng.integer(0, p.l - 1))] = 1;
      experts.back() = static_cast<int32_t>(p.m);
    }
    RandomCase data(p, rng, Values::kRandom, experts, owners);
    EXPECT_EQ(launches_of(data), one.launches);
    ASSERT_TRUE(simulate(data, {.max_ctas = 7, .prepared = p.l < 100}));
    EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
    EXPECT_TRUE(others_are_poison(data));
  }
}

TEST(Sm90aSkinnyGroups, WhatCannotBeIsCut) {
  Rng rng;
  for (int round = 0; round < 8; ++round) {
    Problem p{.m = rng.integer(5, 40), .n = 33, .k = 128, .l = rng.integer(1, 9)};
    p.a.type = kTypes[static_cast<size_t>(round % 3)];
    expect_cut(
        round % 4 < 2 ? swizzled(p) : p,
        [&](RandomCase& data) {
          return simulate(data, {.max_ctas = 7, .prepared = round % 2 == 0});
        },
        rng);
  }
}

// The oracle's sums of an exact problem, in every schedule.
void expect_oracles_bits(RandomCase& data, SimulatedRun run) {
  data.poison_d();
  ASSERT_TRUE(reference::dual_gemm(data.problem, data.buffers()).ok());
  const std::vector<uint8_t> sums(data.d.data.begin(), data.d.data.end());
  for (const ptxsim::Schedule schedule :
       {ptxsim::Schedule::kEager, ptxsim::Schedule::kLazy, ptxsim::Schedule::kRandom}) {
    run.options.schedule = schedule;
    data.poison_d();
    ASSERT_TRUE(simulate(data, run));
    EXPECT_TRUE(std::equal(sums.begin(), sums.end(), data.d.data.begin()));
  }
}

// CTAs with more tiles than are planned at a time, several times over; warps with no chunk of a
// tile, and with as many as their rings have, and more.
TEST(Sm90aSkinnyGroups, PlansOfManyTiles) {
  Rng rng;
  int next = 0;
  for (const int64_t k : {448, 1344, 64 * 63}) {
    Problem p{.m = 120, .n = 72, .k = k, .l = 6, .d = {.type = DataType::kF32}};
    p.grouping = next == 1 ? Grouping::kMasked : Grouping::kContiguous;
    if (p.grouping == Grouping::kMasked) p.m = 24;
    if (next % 2 == 0) p.a_rows = 50;
    p.a.type = kTypes[static_cast<size_t>(next % 3)];
    p.act.kind = ActivationKind::kIdentity;
    if (p.a.type == DataType::kE2M1) p = swizzled(p);
    RandomCase data(p, rng, Values::kExact);
    for (const int64_t cols : {16, 32}) {
      SCOPED_TRACE(::testing::Message() << "k " << k << " cols " << cols);
      expect_oracles_bits(data, {.cols = cols, .max_ctas = 1 + next % 2, .prepared = true});
    }
    ++next;
  }
}

TEST(Sm90aSkinnyGroups, SumsAreTheOraclesBitForBit) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    Problem p{.m = 14, .n = 40, .k = 1344, .l = 4, .d = {.type = DataType::kF32}};
    p.grouping = grouping;
    p.act.kind = ActivationKind::kIdentity;
    RandomCase data(swizzled(p), rng, Values::kExact);
    for (const bool prepared : {false, true}) {
      SCOPED_TRACE(prepared);
      expect_oracles_bits(data, {.prepared = prepared});
    }
  }
}

TEST(Sm90aSkinnyGroups, ChoiceAndRefusals) {
  namespace skinny = cuda::sm90a_skinny;
  Problem p{.m = 512, .n = 768, .k = 2048, .l = 128, .grouping = Grouping::kContiguous};
  EXPECT_EQ(skinny::choose_instance(p, 132, true).config.tile_m, 8);
  EXPECT_TRUE(skinny::is_faster(p, 132, true));
  EXPECT_FALSE(skinny::is_faster(p, 132, false));  // little of k
  p.k = 4096;
  EXPECT_FALSE(skinny::is_faster(p, 132, false));  // four rows an expert
  p.k = 4096 + 64;                                 // the other one would copy all scales
  EXPECT_TRUE(skinny::is_faster(p, 132, false));
  p.m = 128 * 6;
  EXPECT_TRUE(skinny::is_faster(p, 132, true));
  p.m = 128 * 6 + 1;
  EXPECT_EQ(skinny::choose_instance(p, 132, true).config.tile_m, 8);
  EXPECT_FALSE(skinny::is_faster(p, 132, true));
  p.grouping = Grouping::kMasked;
  p.m = 5;
  EXPECT_TRUE(skinny::is_faster(p, 132, true));
  p.m = p.n = p.l = 1 << 20;
  EXPECT_EQ(skinny::supports(p, true).argument(), "m, n, k, l");
}

}  // namespace
}  // namespace dualgemm::test
