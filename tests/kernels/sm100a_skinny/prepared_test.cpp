// Prepared weights of few rows: both tiles on every shape that the unpacked ones are tested on, the
// bits of unpacked weights and of the kernel of pairs' document, and what may be read when.
#include "kernels/simulation/overlap.hpp"
#include "kernels/simulation/results.hpp"
#include "kernels/sm100a_skinny/simulated_run.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/nvfp4_output.hpp"
#include "support/side_by_side.hpp"

namespace dualgemm::test {
namespace {

namespace skinny = cuda::sm100a_skinny;

constexpr int kTilesN[] = {32, 64};

void expect_prepared_right(const Problem& p, int tile_n, Values values = Values::kRandom,
                           int64_t misalign = 0) {
  SkinnyRun run{.tile_n = tile_n, .misalign = misalign, .prepared = true};
  SCOPED_TRACE(describe(p, run));
  Rng rng;
  RandomCase data(p, rng, values);
  for (int64_t l = 0; l < p.l; ++l) {
    data.alpha_gate_per_batch.push_back(rng.uniform(0.25f, 2.0f));
    data.alpha_up_per_batch.push_back(rng.uniform(-2.0f, 2.0f));
  }
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
}

TEST(Sm100aSkinnyPrepared, Rows) {
  for (const int tile_n : kTilesN) {
    for (const int64_t m : {1, 2, 7, 8, 9, 16, 31, 32})
      expect_prepared_right(swizzled({.m = m, .n = tile_n + 3, .k = 320}), tile_n);
  }
}

// Columns that end in every part of a unit, of a tile.
TEST(Sm100aSkinnyPrepared, RaggedColumns) {
  for (const int tile_n : kTilesN) {
    for (const int64_t n : {1, 7, 8, 9, 15, 31, 33, 40, 63, 65, 100, 130})
      expect_prepared_right(swizzled({.m = 5 + n % 7, .n = n, .k = 128}), tile_n);
  }
}

TEST(Sm100aSkinnyPrepared, EveryEndOfK) {
  for (int64_t k = 16; k <= 336; k += 16) {
    expect_prepared_right(swizzled({.m = 3, .n = 9, .k = k}), 32);
    expect_prepared_right({.m = 9, .n = 70, .k = k}, 64);
  }
}

// As many tiles of k as stages, one more, a ring that goes around twice.
TEST(Sm100aSkinnyPrepared, LongK) {
  for (const skinny::Instance& instance : skinny::prepared_instances()) {
    const int stages = instance.stages;
    for (const int64_t k_tiles : {stages, stages + 1, 2 * stages + 1}) {
      expect_prepared_right(swizzled({.m = 29, .n = 20, .k = 256 * k_tiles - 48}),
                            instance.config.tile_n);
    }
  }
}

TEST(Sm100aSkinnyPrepared, BatchesStridesAndMisalignment) {
  Problem p = swizzled({.m = 11, .n = 70, .k = 96, .l = 3, .d = {.type = DataType::kF32}});
  p.gate.ld = 128;
  p.up.ld = 104;
  p.a.ld = 96 + 32;
  p.d.ld = 77;
  p.d.batch_stride = 77 * 131;
  p.gate.batch_stride = 128 * 71;
  p.up.scale_batch_stride = 1024 * 3 + 7;
  for (const int64_t misalign : {0, 1, 9})
    expect_prepared_right(p, misalign == 1 ? 32 : 64, Values::kRandom, misalign);
  Problem linear{.m = 20, .n = 150, .k = 80, .l = 2, .d = {.type = DataType::kBF16}};
  linear.gate.scale_ld = 9;
  linear.a.scale_batch_stride = 5 * 20 + 3;
  expect_prepared_right(linear, 64, Values::kRandom, 5);
}

TEST(Sm100aSkinnyPrepared, EveryActivationOutputAndBias) {
  int next = 0;
  for (const Activation& act : test::every_activation()) {
    Problem p = swizzled({.m = 1 + next * 5 % 32, .n = 50, .k = 320});
    p.d.type = static_cast<DataType>(1 + next % 3);
    p.act = act;
    p.bias = static_cast<BiasType>(next / 3 % 3);
    expect_prepared_right(p, kTilesN[next++ % 2]);
  }
}

// Every finite scale byte with every code: the bits of unpacked weights, whichever tile has them.
TEST(Sm100aSkinnyPrepared, BitsAreThoseOfUnpackedWeights) {
  const Problem p = swizzled({.m = 30, .n = 136, .k = 768, .l = 2, .d = {.type = DataType::kF32}});
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  const std::vector<float> bits = simulated<SkinnyRun>(data, {});
  for (const int tile_n : kTilesN)
    EXPECT_EQ(bits, simulated<SkinnyRun>(data, {.tile_n = tile_n, .prepared = true})) << tile_n;
}

TEST(Sm100aSkinnyPrepared, ProductsAreTheOraclesBitForBit) {
  for (const int tile_n : kTilesN) {
    Problem p = swizzled({.m = 30, .n = 136, .k = 1344, .l = 2, .d = {.type = DataType::kF32}});
    p.act.kind = ActivationKind::kIdentity;
    Rng rng;
    RandomCase data(p, rng, Values::kExact);
    const auto got = simulated<SkinnyRun>(data, {.tile_n = tile_n, .prepared = true});
    EXPECT_EQ(got, expected(data)) << tile_n;
  }
}

TEST(Sm100aSkinnyPrepared, Nvfp4OutputIsTheWideOneQuantized) {
  for (int next = 0; next < 4; ++next) {
    Problem p{.m = 5 + 9 * next, .n = 48 + next % 3 * 48, .k = 272, .l = 1 + next % 2};
    p.bias = static_cast<BiasType>(next % 3);
    p = with_nvfp4_output(p, next % 2 == 0, next % 3 == 0);
    TwoOutputs both(p);
    both.change([next](RandomCase& data) { make_extreme(data, next); });
    SkinnyRun run{.tile_n = kTilesN[next % 2], .prepared = true};
    ASSERT_TRUE(simulate(both.wide, run));
    ASSERT_TRUE(simulate(both.narrow, run));
    EXPECT_TRUE(both.agree()) << next;
  }
}

TEST(Sm100aSkinnyPrepared, SideBySide) {
  Rng rng;
  int next = 0;
  for (Problem p : side_by_side_problems({DataType::kE2M1}, 32, 64, 272, rng)) {
    p.grouping = Grouping::kNone;
    p.m = std::min<int64_t>(p.m, 32);
    const int tile_n = kTilesN[next++ % 2];
    expect_side_by_side(
        p,
        [&](RandomCase& data) {
          SkinnyRun run{.tile_n = tile_n, .prepared = true};
          return simulate(data, run);
        },
        rng);
  }
}

TEST(Sm100aSkinnyPrepared, TheWrongWeightsAreRefused) {
  const Problem p = swizzled({.m = 33, .n = 64, .k = 256});
  EXPECT_EQ(skinny::find_instance(p, 32, 64, true), nullptr);
  EXPECT_NE(skinny::find_instance(p, 64, 64, true, true), nullptr);  // persistent
  Rng rng;
  RandomCase data(swizzled({.m = 3, .n = 64, .k = 256}), rng, Values::kRandom);
  for (const bool prepared : {false, true}) {
    const auto& instance = *(prepared ? skinny::instances() : skinny::prepared_instances()).begin();
    const auto launches =
        skinny::build_launches(data.resolved, data.buffers(), {}, nullptr, instance, 1,
                               simulated_encode_tiled(), prepared ? data.d.data.data() : nullptr);
    EXPECT_EQ(launches.status().argument(), "prepared");
  }
}

// Weights are read before the grid before has ended, which has nothing to do with them (simulate()
// says so); A and D are not.
TEST(Sm100aSkinnyPrepared, EveryWaitForTheGridBeforeIsNeeded) {
  Problem p = swizzled({.m = 5, .n = 70, .k = 320});
  p.bias = BiasType::kF32;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  SkinnyRun run{.prepared = true};
  ASSERT_TRUE(simulate(data, run));
  const Waits waits("dual_gemm_sm100a_skinny_prepared", instance_of(p, run).entry);
  ASSERT_EQ(waits.count(), 2u);  // of the thread that loads A, and of the epilogue
  for (size_t i = 0; i < waits.count(); ++i) {
    run.mutant = waits.without(i);
    EXPECT_FALSE(simulate(data, run));
    ASSERT_FALSE(run.result.reports.list.empty()) << "wait " << i;
    for (const ptxsim::Report& report : run.result.reports.list) EXPECT_EQ(report.rule, 21);
  }
}

// The same bits in every schedule: rings that go around, fewer tiles of k than stages, both tiles.
TEST(Sm100aSkinnyPrepared, TheSameInEverySchedule) {
  using ptxsim::Schedule;
  constexpr uint64_t kSeedsOfPrepared = 10;  // of the random and of the lazy schedule
  for (const auto& [m, tile_n, k] : {std::tuple{1, 64, 256 * 19 - 64},
                                     std::tuple{29, 32, 256 * 31 - 128}, std::tuple{12, 64, 192}}) {
    const Problem p = swizzled({.m = m, .n = tile_n + 2, .k = k, .d = {.type = DataType::kF32}});
    Rng rng;
    RandomCase data(p, rng, Values::kWide);
    const std::vector<float> bits =
        simulated<SkinnyRun>(data, {.tile_n = tile_n, .prepared = true});
    ASSERT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
    for (const Schedule schedule : {Schedule::kLazy, Schedule::kRandom}) {
      for (uint64_t seed = 1; seed <= kSeedsOfPrepared; ++seed) {
        SkinnyRun run{.tile_n = tile_n, .prepared = true};
        run.options.schedule = schedule;
        run.options.seed = seed;
        data.poison_d();
        ASSERT_TRUE(simulate(data, run)) << describe(run.options);
        ASSERT_TRUE(run.result.reports.list.empty())  // no warning or advisory either
            << ptxsim::to_string(run.result.reports.list.front());
        ASSERT_EQ(bits, result_of(data)) << describe(run.options);
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
