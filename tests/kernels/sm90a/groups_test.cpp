// Groups of experts through the wgmma kernel: support/grouped.hpp.
#include <algorithm>
#include <limits>

#include "cuda/kernels/sm90a/extents.hpp"
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm90a/simulated_run.hpp"
#include "reference/dual_gemm.hpp"
#include "support/grouped.hpp"

namespace dualgemm::test {
namespace {

struct GroupShape {
  int tile_m, tile_n, k_warpgroups;
};
constexpr GroupShape kGroupShapes[] = {{16, 32, 4},  {32, 64, 2},  {64, 128, 1},
                                       {128, 64, 1}, {256, 64, 1}, {128, 96, 1}};

const std::vector<DataType> kF16OfA{DataType::kE2M1, DataType::kF16};
const std::vector<DataType> kBF16OfA{DataType::kBF16};

SimulatedRun run_of(const GroupShape& shape, int max_ctas, bool prepared) {
  return {.tile_m = shape.tile_m,
          .tile_n = shape.tile_n,
          .k_warpgroups = shape.k_warpgroups,
          .max_ctas = max_ctas,
          .prepared = prepared};
}

void expect_every_way(const GroupShape& shape, const std::vector<DataType>& types, bool prepared) {
  SCOPED_TRACE(::testing::Message() << "tile_m " << shape.tile_m << (prepared ? ", prepared" : ""));
  Rng rng;
  int next = 0;
  for (const GroupedCase& one : grouped_cases(types, shape.tile_m, shape.tile_n, 576, rng)) {
    const int ctas = 1 + next++ % 5;
    expect_right(
        one,
        [&](RandomCase& data) {
          SimulatedRun run = run_of(shape, ctas, prepared);
          return simulate(data, run);
        },
        rng);
  }
}

TEST(Sm90aGroups, TilesOf16Rows) {
  expect_every_way(kGroupShapes[0], kF16OfA, false);
  expect_every_way(kGroupShapes[0], kBF16OfA, true);
}
TEST(Sm90aGroups, TilesOf32Rows) {
  expect_every_way(kGroupShapes[1], kBF16OfA, false);
  expect_every_way(kGroupShapes[1], kF16OfA, true);
}
TEST(Sm90aGroups, TilesOf64Rows) { expect_every_way(kGroupShapes[2], kF16OfA, true); }
TEST(Sm90aGroups, TilesOf128Rows) { expect_every_way(kGroupShapes[3], kF16OfA, false); }
TEST(Sm90aGroups, TilesOf256Rows) { expect_every_way(kGroupShapes[4], kBF16OfA, true); }
TEST(Sm90aGroups, TilesOf96Columns) {
  expect_every_way(kGroupShapes[5], kF16OfA, true);
  expect_every_way(kGroupShapes[5], kBF16OfA, false);
}

TEST(Sm90aGroups, RowsByIndex) {
  Rng rng;
  for (const bool prepared : {false, true}) {
    const GroupShape& shape = kGroupShapes[prepared ? 1 : 0];
    for (const GroupedCase& one :
         indexed_cases(prepared ? kBF16OfA : kF16OfA, shape.tile_m, shape.tile_n, 320, rng)) {
      expect_right(
          one,
          [&](RandomCase& data) {
            SimulatedRun run = run_of(shape, 3, prepared);
            return simulate(data, run);
          },
          rng);
    }
  }
}

// A of at most half the rows that the products have: the kernel copies them from where they were
// prepared once each.
constexpr GroupShape kFindingShapes[] = {kGroupShapes[2], kGroupShapes[3], kGroupShapes[5]};

const cuda::sm90a::Config& config_of(const GroupShape& shape, bool bf16, bool prepared) {
  return cuda::sm90a::find_instance(cuda::sm90a::group_instances(), shape.tile_m, shape.tile_n,
                                    shape.k_warpgroups, bf16, prepared)
      ->config;
}

TEST(Sm90aGroups, RowsThatTheKernelFindsByItself) {
  Rng rng;
  int next = 0;
  for (const GroupShape& shape : kFindingShapes) {
    for (const bool prepared : {false, true}) {
      const bool bf16 = next++ % 2 != 0;
      int index = 0;
      for (GroupedCase& one : indexed_cases(bf16 ? kBF16OfA : kF16OfA, shape.tile_m, shape.tile_n,
                                            256 * 3 + 64, rng)) {
        if (index++ == 4) break;
        one.problem.a_rows = rng.integer(1, one.problem.m / 2);
        if (!bf16) one.problem.a.type = index % 2 != 0 ? DataType::kF16 : DataType::kE2M1;
        if (one.problem.a.type == DataType::kF16) one.problem.a.scale_layout = {};
        ASSERT_TRUE(cuda::sm90a::gathers(one.problem, config_of(shape, bf16, prepared)));
        expect_right(
            one,
            [&](RandomCase& data) {
              SimulatedRun run = run_of(shape, 1 + index % 2 * 2, prepared);
              const ::testing::AssertionResult result = simulate(data, run);
              for (const ptxsim::Report& report : run.reports) {
                EXPECT_NE(report.rule, 1) << to_string(report);  // a fence of proxies: a warning
              }
              return result;
            },
            rng);
      }
    }
  }
}

// Rows of `kFoundOffsets`' experts that a kernel finds by itself.
Problem found_rows_of(int64_t k) {
  return {.m = 300,
          .n = 130,
          .k = k,
          .l = 3,
          .a = {.type = DataType::kF16},
          .d = {.type = DataType::kF32},
          .grouping = Grouping::kContiguous,
          .a_rows = 90};
}
const std::vector<int32_t> kFoundOffsets{0, 70, 71, 290};

// The ring's stages are handed over in the right order, whatever ends first.
TEST(Sm90aGroups, RowsThatTheKernelFindsByItselfInEverySchedule) {
  Rng rng;
  bool prepared = false;
  for (const GroupShape& shape : kFindingShapes) {
    prepared = !prepared;
    Problem p = found_rows_of(256 * 4 + 16);
    p.act.kind = ActivationKind::kIdentity;
    RandomCase data(p, rng, Values::kExact, kFoundOffsets, {});
    expect_same_bits_in_schedules(data, run_of(shape, 2, prepared), 2,
                                  reference::Accumulation::kAnyOrder);
  }
}

// The bits of D are those of rows that the preparation copies.
TEST(Sm90aGroups, FoundRowsHaveTheBitsOfCopiedOnes) {
  Rng rng;
  const Problem found_problem = found_rows_of(816);
  Problem copied_problem = found_problem;
  copied_problem.a_rows = copied_problem.m;
  RandomCase found(found_problem, rng, Values::kRandom, kFoundOffsets, {});
  RandomCase copied(copied_problem, rng, Values::kRandom, kFoundOffsets, {});
  const auto give = [](const auto& from, auto& to) {
    std::copy(from.begin(), from.end(), to.begin());
  };
  give(found.a.data, copied.a.data);  // the first 90 rows
  give(found.gate.data, copied.gate.data);
  give(found.gate.scales, copied.gate.scales);
  give(found.up.data, copied.up.data);
  give(found.up.scales, copied.up.scales);
  copied.a_row_index = found.a_row_index;
  copied.alpha_gate = found.alpha_gate;
  copied.alpha_up = found.alpha_up;
  for (const GroupShape& shape : kFindingShapes) {
    for (const bool prepared : {false, true}) {
      ASSERT_TRUE(cuda::sm90a::gathers(found_problem, config_of(shape, false, prepared)));
      ASSERT_FALSE(cuda::sm90a::gathers(copied_problem, config_of(shape, false, prepared)));
      SimulatedRun run = run_of(shape, 5, prepared);
      found.poison_d();
      copied.poison_d();
      ASSERT_TRUE(simulate(found, run));
      ASSERT_TRUE(simulate(copied, run));
      EXPECT_TRUE(std::equal(found.d.data.begin(), found.d.data.end(), copied.d.data.begin()));
    }
  }
}

// An index beyond A's rows is cut to the last one: the GPU's word on what the host cannot read.
TEST(Sm90aGroups, IndexBeyondAIsCut) {
  Rng rng;
  for (const GroupShape& shape : kFindingShapes) {
    for (const int64_t a_rows : {1, 37}) {
      Problem p{.m = 150,
                .n = 100,
                .k = 592,
                .l = 3,
                .a = {.scale_layout = ScaleLayout::kSwizzled128x4},
                .d = {.type = DataType::kF16},
                .grouping = Grouping::kContiguous,
                .a_rows = a_rows};
      p.batch_invariant = a_rows == 1;
      RandomCase data(p, rng, Values::kRandom, {0, 70, 70, 140}, {});
      expect_index_cut(data, [&](RandomCase& one) {
        SimulatedRun run = run_of(shape, 3, a_rows == 1);
        return simulate(one, run);
      });
    }
  }
}

// Which tiles find rows by themselves, and for what: A is then prepared once a row of its own.
TEST(Sm90aGroups, WhereTheKernelFindsRows) {
  namespace sm90a = cuda::sm90a;
  Problem p{.m = 4096,
            .n = 1024,
            .k = 512,
            .l = 4,
            .a = {.type = DataType::kF16},
            .grouping = Grouping::kContiguous,
            .a_rows = 512};
  for (const GroupShape& shape : kGroupShapes) {
    EXPECT_EQ(sm90a::gathers(p, config_of(shape, false, true)),
              shape.tile_m == 64 || shape.tile_m == 128);
  }
  EXPECT_NE(sm90a::choose_instance(p, 132, true).config.tile_m, 256);
  const sm90a::Config& config = config_of(kGroupShapes[2], false, true);
  const auto bytes = [&] {
    return sm90a::plan_workspace(core::resolve(p), config, sm90a::make_schedule(p, config, 132),
                                 false)
        .bytes;
  };
  const int64_t found = bytes();
  p.a_rows = 0;
  EXPECT_FALSE(sm90a::gathers(p, config));
  EXPECT_EQ(bytes() - found, (4096 - 512) * 512 * 2);
  p.a_rows = p.m / 2 + 1;
  EXPECT_FALSE(sm90a::gathers(p, config));
  p.a_rows = p.m / 2;
  EXPECT_TRUE(sm90a::gathers(p, config));
  p.n = 1025;
  EXPECT_FALSE(sm90a::gathers(p, config));
  p.n = 1024, p.m = int64_t{1} << 27, p.a_rows = int64_t{1} << 25;
  EXPECT_TRUE(sm90a::gathers(p, config));
  ++p.a_rows;
  EXPECT_FALSE(sm90a::gathers(p, config));
}

// So many k-tiles that a warp prepares several rows.
TEST(Sm90aGroups, SeveralRowsByIndexOfAWarp) {
  constexpr int64_t kK = 256 * 140, kLeastRows = 30;
  Rng rng;
  int left = 2;
  for (const GroupedCase& one : indexed_cases(kBF16OfA, 16, 32, kK, rng)) {
    if (one.problem.m < kLeastRows || left == 0) continue;
    --left;
    expect_right(
        one,
        [&](RandomCase& data) {
          SimulatedRun run = run_of(kGroupShapes[1], 3, true);
          return simulate(data, run);
        },
        rng);
  }
  EXPECT_EQ(left, 0);
}

// Weights that the TMA unit cannot read where they lie are copied before; operands at any address.
TEST(Sm90aGroups, CopiesBefore) {
  Rng rng;
  for (const int64_t misalign : {0, 3}) {
    Problem p{.m = 60, .n = 70, .k = 208, .l = 3, .grouping = Grouping::kContiguous};
    p.gate.ld = p.k + 10;
    p.up.scale_ld = p.k / 16 + 1;
    expect_right(
        {p, {}},
        [&](RandomCase& data) {
          SimulatedRun run = run_of(kGroupShapes[1], 3, false);
          run.misalign = misalign;
          return simulate(data, run);
        },
        rng);
  }
}

TEST(Sm90aGroups, WhatCannotBeIsCut) {
  Rng rng;
  for (int round = 0; round < 6; ++round) {
    const Problem p{.m = rng.integer(20, 70), .n = 33, .k = 320, .l = rng.integer(1, 9)};
    const GroupShape& shape = kGroupShapes[round % 3];
    expect_cut(
        round % 4 < 2 ? swizzled(p) : p,
        [&](RandomCase& data) {
          SimulatedRun run = run_of(shape, 5, round % 2 == 0);
          return simulate(data, run);
        },
        rng);
  }
}

// Exact, however few CTAs share the tiles and in every schedule; whole tiles where bits must not
// depend on m.
TEST(Sm90aGroups, SumsAreTheOraclesBitForBit) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    Problem p{.m = 40, .n = 100, .k = 1344, .l = 3, .d = {.type = DataType::kF32}};
    p.grouping = grouping;
    p.act.kind = ActivationKind::kIdentity;
    p.batch_invariant = grouping == Grouping::kMasked;
    RandomCase data(swizzled(p), rng, Values::kExact);
    ASSERT_TRUE(reference::dual_gemm(data.problem, data.buffers()).ok());
    const std::vector<uint8_t> sums(data.d.data.begin(), data.d.data.end());
    for (const int ctas : {1, 5, 7}) {
      for (const ptxsim::Schedule schedule :
           {ptxsim::Schedule::kEager, ptxsim::Schedule::kLazy, ptxsim::Schedule::kRandom}) {
        SimulatedRun run = run_of(kGroupShapes[p.batch_invariant ? 2 : 1], ctas, ctas != 5);
        run.options.schedule = schedule;
        data.poison_d();
        ASSERT_TRUE(simulate(data, run));
        EXPECT_TRUE(std::equal(sums.begin(), sums.end(), data.d.data.begin())) << ctas;
      }
    }
  }
}

// One CTA for many tiles, of which an odd number of chunks of 32 rows exists: what the warps of a
// block tell each other about one tile must not meet what they do about the next.
TEST(Sm90aGroups, Nvfp4OutputOfTilesThatEndEarly) {
  Rng rng;
  const std::vector<int32_t> offsets = {0, 20, 90, 91, 187, 219, 284};  // 1, 3, 1, 3, 1, 3 chunks
  for (const bool prepared : {false, true}) {
    Problem p{.m = offsets.back(),
              .n = 80,
              .k = 256,
              .l = static_cast<int64_t>(offsets.size()) - 1,
              .a = {.type = DataType::kF16},
              .d = {.type = DataType::kE2M1},
              .grouping = Grouping::kContiguous};
    RandomCase data(p, rng, Values::kRandom, offsets, {});
    expect_same_bits_in_schedules(data, run_of(kGroupShapes[3], 1, prepared), 2,
                                  reference::Accumulation::kAnyOrder);
  }
}

// The GPU deals out the work as the host does where it knows the number of tiles.
TEST(Sm90aGroups, ChoiceAndSchedule) {
  namespace sm90a = cuda::sm90a;
  Problem p{.m = 128 * 40, .n = 768, .k = 2048, .l = 128, .grouping = Grouping::kContiguous};
  const auto tile_m = [&] { return sm90a::choose_instance(p, 132, true).config.tile_m; };
  const int few = tile_m();
  EXPECT_TRUE(sm90a::choose_instance(p, 132, true).config.grouped);
  p.m = 128 * 1024;
  EXPECT_GT(tile_m(), few);
  p.batch_invariant = true;
  EXPECT_EQ(sm90a::choose_instance(p, 132, false).config.k_warpgroups, 1);
  p.m = 128;
  EXPECT_EQ(sm90a::choose_instance(p, 132, false).config.k_warpgroups, 1);
  const sm90a::Config& config = sm90a::choose_instance(p, 132, false).config;
  EXPECT_FALSE(sm90a::may_share(p, sm90a::make_schedule(p, config, 132)));
  p.batch_invariant = false;
  EXPECT_TRUE(sm90a::may_share(p, sm90a::make_schedule(p, config, 132)));
}

}  // namespace
}  // namespace dualgemm::test
