// Inputs whose sums are exact: the accumulators must be the oracle's, bit for bit, through an
// identity epilogue; the bits are those of the kernel of one CTA; and what NaN may reach.
#include <algorithm>
#include <cmath>

#include "kernels/simulation/results.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"
#include "reference/dual_gemm.hpp"

namespace dualgemm::test {
namespace {

// Both CTAs, both halves of a scale tile, a ring that goes around, a pair whose second CTA has no
// row.
TEST(Sm100aPairExact, ProductsAreTheOraclesBitForBit) {
  for (const int tile_n : {64, 128}) {
    Problem p = swizzled({.m = 270, .n = 200, .k = 256 * 8 + 64, .d = {.type = DataType::kF32}});
    p.act.kind = ActivationKind::kIdentity;
    p.bias = tile_n == 64 ? BiasType::kF32 : BiasType::kBF16;
    Rng rng;
    RandomCase data(p, rng, Values::kExact);
    // g * u of exact g and u is rounded once, by both to the nearest.
    EXPECT_EQ(simulated<SimulatedRun>(data, {.tile_n = tile_n}), expected(data))
        << "tile_n " << tile_n;
  }
}

// Side by side in D, each accumulator is seen without the other.
TEST(Sm100aPairExact, EachAccumulatorAlone) {
  Problem p = swizzled({.m = 200, .n = 130, .k = 768, .d = {.type = DataType::kF32}});
  p.combine = Combine::kSideBySide;
  p.up_column = 100;
  Rng rng;
  RandomCase data(p, rng, Values::kExact);
  data.poison_d();
  SimulatedRun run{.tile_n = 64};
  ASSERT_TRUE(simulate(data, run));
  const std::vector<uint8_t> got(data.d.data.begin(), data.d.data.end());
  data.poison_d();
  ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
  EXPECT_TRUE(std::equal(got.begin(), got.end(), data.d.data.begin()));
}

TEST(Sm100aPairExact, RowsDoNotDependOnTheTileOrOnTheKernel) {
  const Problem p = swizzled({.m = 140, .n = 128, .k = 512, .d = {.type = DataType::kF32}});
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  const std::vector<float> narrow = simulated<SimulatedRun>(data, {.tile_n = 64});
  EXPECT_EQ(narrow, simulated<SimulatedRun>(data, {.tile_n = 128}));
  EXPECT_EQ(narrow, simulated<SimulatedRun>(data, {.tile_n = 128, .misalign = 3}));
  EXPECT_EQ(narrow, simulated<SimulatedRun>(data, {.tile_n = 64, .one_cta = true}));
}

// A NaN scale reaches the row or column it belongs to, and nothing else. Elsewhere the padding,
// which RandomCase fills with NaN, would already have shown.
TEST(Sm100aPairExact, NanScalesReachTheirRowOrColumn) {
  const Problem p = swizzled({.m = 140, .n = 110, .k = 128, .d = {.type = DataType::kF32}});
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  data.a.scales[data.resolved.a.scale_map()(131, 5)] = 0x7F;
  data.gate.scales[data.resolved.gate.scale_map()(2, 0)] = 0xFF;
  data.up.scales[data.resolved.up.scale_map()(100, 7)] = 0x7F;
  const std::vector<float> got = simulated<SimulatedRun>(data, {.tile_n = 64});
  for (int64_t row = 0; row < p.m; ++row) {
    for (int64_t col = 0; col < p.n; ++col) {
      const bool lost = row == 131 || col == 2 || col == 100;
      ASSERT_EQ(std::isnan(got[static_cast<size_t>(row * p.n + col)]), lost)
          << "row " << row << " col " << col;
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
