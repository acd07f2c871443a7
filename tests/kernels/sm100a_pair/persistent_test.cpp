// Persistent pairs, which do one tile after the other: more tiles than pairs, fewer, as many; the
// bits of the kernel that gives each pair one, the oracle's, and everything that a tile may be.
#include "kernels/simulation/overlap.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"
#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/nvfp4_output.hpp"
#include "support/side_by_side.hpp"

namespace dualgemm::test {
namespace {

struct Way {
  bool prepared;
  int64_t ctas;
};

SimulatedRun persistent(const Way& way, int64_t misalign = 0) {
  return {.misalign = misalign, .prepared = way.prepared, .persistent_ctas = way.ctas};
}

void expect_right(const Problem& p, const Way& way, int64_t misalign = 0) {
  SCOPED_TRACE(::testing::Message()
               << "m " << p.m << " n " << p.n << " k " << p.k << " l " << p.l << ", d "
               << name_of(p.d.type) << ", " << name_of(p.act.kind) << ", prepared " << way.prepared
               << ", ctas " << way.ctas << ", misalign " << misalign);
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  for (int64_t l = 0; l < p.l; ++l) {
    data.alpha_gate_per_batch.push_back(rng.uniform(0.25f, 2.0f));
    data.alpha_up_per_batch.push_back(rng.uniform(-2.0f, 2.0f));
  }
  for (int64_t row = 0; row < p.l * p.m; ++row) data.a_row_scale.push_back(rng.uniform(0.5f, 2.0f));
  SimulatedRun run = persistent(way, misalign);
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
}

std::vector<uint8_t> persistent_bits(RandomCase& data, SimulatedRun run) {
  data.poison_d();
  EXPECT_TRUE(simulate(data, run));
  return {data.d.data.begin(), data.d.data.end()};
}

// Twelve tiles: of one pair, of pairs that have equally many, or not, and of more pairs than tiles.
TEST(Sm100aPairPersistent, BitsDoNotDependOnTheGridOrOnTheKernel) {
  const Problem p =
      swizzled({.m = 300, .n = 3 * 128 - 9, .k = 704, .l = 2, .d = {.type = DataType::kF32}});
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  const std::vector<uint8_t> expected = persistent_bits(data, {.tile_n = 64});
  for (const bool prepared : {false, true}) {
    for (const int64_t ctas : {2, 8, 10, 148}) {
      SimulatedRun run = persistent({prepared, ctas});
      EXPECT_EQ(persistent_bits(data, run), expected) << prepared << ", " << ctas;
    }
  }
}

// Plain SiLU, which has a way of its own in the other kernel.
TEST(Sm100aPairPersistent, BitsOfPlainSilu) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    const Problem p = swizzled({.m = 257, .n = 300, .k = 320, .d = {.type = type}});
    Rng rng;
    RandomCase data(p, rng, Values::kChallenge);
    const std::vector<uint8_t> expected = persistent_bits(data, {.tile_n = 128});
    EXPECT_EQ(persistent_bits(data, persistent({false, 4})), expected);
    EXPECT_EQ(persistent_bits(data, persistent({true, 4})), expected);
  }
}

TEST(Sm100aPairPersistent, ProductsAreTheOraclesBitForBit) {
  for (const bool prepared : {false, true}) {
    Problem p = swizzled({.m = 270, .n = 270, .k = 256 * 6 + 64, .d = {.type = DataType::kF32}});
    p.act.kind = ActivationKind::kIdentity;
    p.bias = prepared ? BiasType::kF32 : BiasType::kBF16;
    Rng rng;
    RandomCase data(p, rng, Values::kExact);
    const std::vector<uint8_t> got = persistent_bits(data, persistent({prepared, 4}));
    data.poison_d();
    ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), data.d.data.begin())) << prepared;
  }
}

// More rows of tiles than a band has, in two batches.
TEST(Sm100aPairPersistent, Bands) {
  const int64_t rows = 256 * cuda::sm100a_pair::kBandTiles + 130;
  for (const bool prepared : {false, true})
    expect_right(swizzled({.m = rows, .n = 140, .k = 32, .l = 2}), {prepared, 6});
}

// A tile of one stage, whose first stage is its last; fewer than a ring has; rings whose end is
// anywhere in a tile.
TEST(Sm100aPairPersistent, AnyNumberOfStages) {
  for (const bool prepared : {false, true}) {
    for (const int k_tiles : {1, 2, 3, 5, 6, 11})
      expect_right(swizzled({.m = 131, .n = 520, .k = 256 * k_tiles - 48}), {prepared, 4});
  }
}

// Rows that end in either CTA and columns that end in a chunk of the epilogue, in a tile that is
// not the last.
TEST(Sm100aPairPersistent, RaggedRowsAndColumns) {
  for (const bool prepared : {false, true}) {
    for (const int64_t m : {1, 127, 129, 160, 257})
      expect_right(swizzled({.m = m, .n = 129, .k = 64, .l = 2}), {prepared, 2});
    for (const int64_t n : {1, 15, 33, 63, 65, 127})
      expect_right(swizzled({.m = 133, .n = n, .k = 128, .l = 3}), {prepared, 4});
  }
}

TEST(Sm100aPairPersistent, BatchesStridesAndMisalignment) {
  Problem p = swizzled({.m = 130, .n = 170, .k = 96, .l = 3, .d = {.type = DataType::kF32}});
  p.gate.ld = 128;
  p.up.ld = 104;
  p.d.ld = 177;
  p.d.batch_stride = 177 * 131;
  p.gate.batch_stride = 128 * 171;
  p.up.scale_batch_stride = 1024 * 4 + 7;
  Problem linear{.m = 140, .n = 150, .k = 80, .l = 2, .d = {.type = DataType::kBF16}};
  linear.gate.scale_ld = 9;
  linear.a.scale_batch_stride = 5 * 140 + 3;
  for (const bool prepared : {false, true}) {
    for (const int64_t misalign : {0, 9}) expect_right(p, {prepared, 4}, misalign);
    expect_right(linear, {prepared, 2}, 5);
  }
}

TEST(Sm100aPairPersistent, EveryActivationOutputAndBias) {
  int next = 0;
  for (const Activation& act : test::every_activation()) {
    Problem p = swizzled({.m = 137, .n = 178, .k = 320});
    p.d.type = static_cast<DataType>(1 + next % 3);
    p.act = act;
    p.bias = static_cast<BiasType>(next / 3 % 3);
    expect_right(p, {next++ % 2 == 0, 2});
  }
}

TEST(Sm100aPairPersistent, Nvfp4OutputIsTheWideOneQuantized) {
  for (int next = 0; next < 6; ++next) {
    Problem p{.m = 128 + 12 * (next % 2), .n = 144 + next % 3 * 48, .k = 272, .l = 1 + next % 2};
    p.bias = static_cast<BiasType>(next % 3);
    p = with_nvfp4_output(p, next % 2 == 0 || next % 3 == 1, next % 3 == 0);
    SCOPED_TRACE(::testing::Message() << "case " << next);
    TwoOutputs both(p);
    both.change([next](RandomCase& data) { make_extreme(data, next); });
    SimulatedRun run = persistent({next >= 3, 2});
    ASSERT_TRUE(simulate(both.wide, run));
    ASSERT_TRUE(simulate(both.narrow, run));
    EXPECT_TRUE(both.agree());
  }
}

TEST(Sm100aPairPersistent, SideBySide) {
  Rng rng;
  int next = 0;
  for (Problem p : side_by_side_problems({DataType::kE2M1}, 128, 128, 272, rng)) {
    p.grouping = Grouping::kNone;
    const Way way{next++ % 2 == 0, 2};
    expect_side_by_side(
        p,
        [&](RandomCase& data) {
          SimulatedRun run = persistent(way);
          return simulate(data, run);
        },
        rng);
  }
}

TEST(Sm100aPairPersistent, EveryWaitForTheGridBeforeIsNeeded) {
  for (const bool prepared : {false, true}) {
    const Problem p = swizzled({.m = 130, .n = 140, .k = 64, .d = {.type = DataType::kF32}});
    const auto* const instance =
        cuda::sm100a_pair::find_instance(128, DataType::kF32, prepared, true);
    Rng rng;
    RandomCase data(p, rng, Values::kRandom);
    data.a_row_scale.assign(static_cast<size_t>(p.m), 2.0f);  // read before the sums are there
    const Waits waits(cuda::sm100a_pair::module_of(instance->config), instance->entry);
    ASSERT_EQ(waits.count(), 2u);  // of the thread that loads, and of the epilogue
    for (size_t i = 0; i < waits.count(); ++i) {
      SimulatedRun run = persistent({prepared, 2});
      run.mutant = waits.without(i);
      EXPECT_FALSE(simulate(data, run));
      ASSERT_FALSE(run.result.reports.list.empty()) << "wait " << i;
      for (const ptxsim::Report& report : run.result.reports.list) EXPECT_EQ(report.rule, 21);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
