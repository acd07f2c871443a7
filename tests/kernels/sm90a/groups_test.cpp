// Groups of experts through the wgmma kernel: support/grouped.hpp.
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

// A of fewer rows than the products have: the kernel copies them from where they were prepared.
TEST(Sm90aGroups, RowsThatTheKernelFindsByItself) {
  Rng rng;
  int next = 0;
  for (const GroupShape& shape : {kGroupShapes[2], kGroupShapes[3], kGroupShapes[5]}) {
    for (const bool prepared : {false, true}) {
      const bool bf16 = next++ % 2 != 0;
      int left = 2;
      for (GroupedCase& one : indexed_cases(bf16 ? kBF16OfA : kF16OfA, shape.tile_m, shape.tile_n,
                                            256 * 3 + 64, rng)) {
        if (left-- == 0) break;
        one.problem.a_rows = rng.integer(1, one.problem.m - 1);
        const cuda::sm90a::Instance* const instance =
            cuda::sm90a::find_instance(cuda::sm90a::group_instances(), shape.tile_m, shape.tile_n,
                                       shape.k_warpgroups, bf16, prepared);
        ASSERT_NE(instance, nullptr);
        ASSERT_TRUE(cuda::sm90a::gathers(one.problem, instance->config));
        expect_right(
            one,
            [&](RandomCase& data) {
              SimulatedRun run = run_of(shape, 1 + left * 2, prepared);
              return simulate(data, run);
            },
            rng);
      }
    }
  }
}

// The ring's stages are handed over in the right order, whatever ends first; bits are those of rows
// that lie in order.
TEST(Sm90aGroups, RowsThatTheKernelFindsByItselfInEverySchedule) {
  Rng rng;
  for (const GroupShape& shape : {kGroupShapes[2], kGroupShapes[5]}) {
    Problem p{.m = 300,
              .n = 130,
              .k = 256 * 4 + 16,
              .l = 3,
              .a = {.type = DataType::kF16},
              .d = {.type = DataType::kF32},
              .grouping = Grouping::kContiguous,
              .a_rows = 90};
    p.act.kind = ActivationKind::kIdentity;
    RandomCase data(p, rng, Values::kExact, {0, 70, 71, 290}, {});
    expect_same_bits_in_schedules(data, run_of(shape, 2, true), 2,
                                  reference::Accumulation::kAnyOrder);
  }
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
