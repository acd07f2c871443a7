// Every tile on prepared weights against the oracle: shapes, layouts before the preparation,
// strides, types, activations; outputs that are quantised or side by side; and that a tile does not
// matter.
#include "kernels/simulation/results.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"
#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/factors.hpp"
#include "support/nvfp4_output.hpp"
#include "support/side_by_side.hpp"

namespace dualgemm::test {
namespace {

constexpr int kTiles[] = {48, 64, 80, 96, 112, 128};

void expect_right(const Problem& p, int tile_n, Values values = Values::kRandom,
                  int64_t misalign = 0) {
  SCOPED_TRACE(::testing::Message() << "m " << p.m << " n " << p.n << " k " << p.k << " l " << p.l
                                    << ", d " << name_of(p.d.type) << ", " << name_of(p.act.kind)
                                    << ", tile_n " << tile_n << ", misalign " << misalign);
  Rng rng;
  RandomCase data(p, rng, values);
  add_alphas_and_row_scales(data, rng);
  SimulatedRun run{.tile_n = tile_n, .misalign = misalign, .prepared = true};
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
}

// Tiles that begin at any multiple of 16, and end at, before and behind the last column; rows that
// end in either CTA.
TEST(Sm100aPairPrepared, RaggedRowsAndColumns) {
  int next = 0;
  for (const int tile_n : kTiles) {
    for (const int64_t n : {1, tile_n / 2 + 1, tile_n, 2 * tile_n + 17}) {
      const int64_t m[] = {1, 127, 129, 257};
      expect_right(swizzled({.m = m[next++ % 4], .n = n, .k = 80}), tile_n);
    }
  }
}

// Fewer tiles of k than are loaded early, as many as stages, a ring that goes around twice.
TEST(Sm100aPairPrepared, EndsOfKAndLongK) {
  for (const int tile_n : kTiles) {
    const int stages = cuda::sm100a_pair::find_instance(tile_n, DataType::kF16, true)->stages;
    for (const int k_tiles : {1, 3, stages, 2 * stages + 1})
      expect_right({.m = 130, .n = 20, .k = 256 * k_tiles - 16 * (tile_n / 16)}, tile_n);
  }
}

TEST(Sm100aPairPrepared, BatchesStridesAndMisalignment) {
  Problem p = swizzled({.m = 130, .n = 101, .k = 96, .l = 3, .d = {.type = DataType::kF32}});
  p.gate.ld = 128;
  p.up.ld = 104;
  p.d.ld = 107;
  p.d.batch_stride = 107 * 131;
  p.gate.batch_stride = 128 * 103;
  p.up.scale_batch_stride = 1024 * 3 + 7;
  expect_right(p, 48, Values::kRandom, 9);
  p.a.ld = 104;  // copied
  expect_right(p, 80, Values::kRandom, 0);
  Problem linear{.m = 140, .n = 150, .k = 80, .l = 2, .d = {.type = DataType::kBF16}};
  linear.gate.scale_ld = 9;
  linear.a.scale_batch_stride = 5 * 140 + 3;
  expect_right(linear, 112, Values::kRandom, 5);
}

TEST(Sm100aPairPrepared, EveryActivationOutputAndBias) {
  int next = 0;
  for (const Activation& act : test::every_activation()) {
    Problem p = swizzled({.m = 137, .n = 50, .k = 320});
    p.d.type = static_cast<DataType>(1 + next % 3);
    p.act = act;
    p.bias = static_cast<BiasType>(next / 3 % 3);
    expect_right(p, kTiles[next++ % 6]);
  }
}

// Every finite scale byte with every code: the bits are those of unpacked weights and of one CTA.
TEST(Sm100aPairPrepared, RowsDoNotDependOnTheTileOrOnThePreparation) {
  const Problem p = swizzled({.m = 140, .n = 240, .k = 512, .d = {.type = DataType::kF32}});
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  const std::vector<uint8_t> expected =
      simulated_bits<SimulatedRun>(data, {.tile_n = 64, .one_cta = true});
  for (const int tile_n : kTiles)
    EXPECT_EQ(simulated_bits<SimulatedRun>(data, {.tile_n = tile_n, .prepared = true}), expected)
        << tile_n;
}

// Products that are exact, and an identity epilogue.
TEST(Sm100aPairPrepared, ProductsAreTheOraclesBitForBit) {
  for (const int tile_n : kTiles) {
    Problem p = swizzled({.m = 150, .n = 3 * tile_n - 9, .k = 576, .d = {.type = DataType::kF32}});
    p.act.kind = ActivationKind::kIdentity;
    Rng rng;
    RandomCase data(p, rng, Values::kExact);
    const std::vector<uint8_t> got =
        simulated_bits<SimulatedRun>(data, {.tile_n = tile_n, .prepared = true});
    data.poison_d();
    ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), data.d.data.begin())) << tile_n;
  }
}

TEST(Sm100aPairPrepared, Nvfp4OutputIsTheWideOneQuantized) {
  int next = 0;
  for (const int tile_n : kTiles) {
    Problem p{.m = 128 + 12 * (next % 2), .n = 48 + next % 3 * 48, .k = 272, .l = 1 + next % 2};
    p.bias = static_cast<BiasType>(next % 3);
    p = with_nvfp4_output(p, next % 2 == 0, next % 3 == 0);
    SCOPED_TRACE(::testing::Message() << "tile_n " << tile_n);
    TwoOutputs both(p);
    both.change([next](RandomCase& data) { make_extreme(data, next); });
    SimulatedRun run{.tile_n = tile_n, .prepared = true};
    ASSERT_TRUE(simulate(both.wide, run));
    ASSERT_TRUE(simulate(both.narrow, run));
    EXPECT_TRUE(both.agree());
    ++next;
  }
}

TEST(Sm100aPairPrepared, SideBySide) {
  Rng rng;
  for (Problem p : side_by_side_problems({DataType::kE2M1}, 128, 80, 272, rng)) {
    p.grouping = Grouping::kNone;
    expect_side_by_side(
        p,
        [&](RandomCase& data) {
          SimulatedRun run{.tile_n = 80, .prepared = true};
          return simulate(data, run);
        },
        rng);
  }
}

}  // namespace
}  // namespace dualgemm::test
