// Inputs whose sums are exact: the accumulators must be the oracle's, bit for bit, through an
// identity epilogue; and what NaN may and may not reach.
#include <algorithm>
#include <cmath>

#include "kernels/simulation/results.hpp"
#include "kernels/sm90a/simulated_run.hpp"

namespace dualgemm::test {
namespace {

struct Shape {
  int tile_m, tile_n, k_warpgroups;
};
constexpr Shape kShapes[] = {{8, 32, 4},  {16, 32, 4},  {32, 32, 3},  {32, 64, 2},
                             {64, 64, 2}, {64, 128, 1}, {128, 64, 1}, {256, 64, 1}};

TEST(Sm90aExact, ProductsAreTheOraclesBitForBit) {
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    for (const Shape& shape : kShapes) {
      Problem p{.m = shape.tile_m + 5, .n = 70, .k = 1344, .a = {.type = type}};
      p.d.type = DataType::kF32;
      p.act.kind = ActivationKind::kIdentity;
      p.bias = type == DataType::kE2M1 ? BiasType::kBF16 : BiasType::kF32;
      p.gate.scale_layout = p.up.scale_layout = ScaleLayout::kSwizzled128x4;
      Rng rng;
      RandomCase data(p, rng, Values::kExact);
      // g * u of exact g and u is rounded once, by both to the nearest.
      const std::vector<float> sums = expected(data);
      for (const bool prepared : {false, true}) {
        const SimulatedRun run{.tile_m = shape.tile_m,
                               .tile_n = shape.tile_n,
                               .k_warpgroups = shape.k_warpgroups,
                               .max_ctas = 5,
                               .prepared = prepared};
        EXPECT_EQ(simulated(data, run), sums)
            << "a " << name_of(type) << ", tile_m " << shape.tile_m << ", tile_n " << shape.tile_n
            << (prepared ? ", prepared" : "");
      }
    }
  }
}

// One phase and whole tiles: the bits of a row depend on neither the tile nor m.
TEST(Sm90aExact, BatchInvariantRowsDoNotDependOnTheTile) {
  Problem p{.m = 9, .n = 64, .k = 768, .d = {.type = DataType::kF32}, .batch_invariant = true};
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  for (const bool prepared : {false, true}) {
    const std::vector<float> bits =
        simulated<SimulatedRun>(data, {.max_ctas = 3, .prepared = prepared});
    const auto of_tile = [&](int tile_m, int tile_n) {
      return simulated<SimulatedRun>(data,
                                     {.tile_m = tile_m, .tile_n = tile_n, .prepared = prepared});
    };
    EXPECT_EQ(bits, of_tile(64, 128));
    EXPECT_EQ(bits, of_tile(128, 64));
    EXPECT_EQ(bits, of_tile(256, 64));
  }
}

// A NaN scale reaches the row or column it belongs to, and nothing else. Elsewhere the padding,
// which RandomCase fills with NaN, would already have shown.
TEST(Sm90aExact, NanScalesReachTheirRowOrColumn) {
  for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
    Problem p{.m = 14, .n = 70, .k = 128, .d = {.type = DataType::kF32}};
    p.a.scale_layout = p.gate.scale_layout = p.up.scale_layout = layout;
    Rng rng;
    RandomCase data(p, rng, Values::kRandom);
    data.a.scales[data.resolved.a.scale_map()(11, 5)] = 0x7F;
    data.gate.scales[data.resolved.gate.scale_map()(2, 0)] = 0xFF;
    data.up.scales[data.resolved.up.scale_map()(69, 7)] = 0x7F;
    for (const bool prepared : {false, true}) {
      const std::vector<float> got = simulated<SimulatedRun>(data, {.prepared = prepared});
      for (int64_t row = 0; row < p.m; ++row) {
        for (int64_t col = 0; col < p.n; ++col) {
          const bool lost = row == 11 || col == 2 || col == 69;
          ASSERT_EQ(std::isnan(got[static_cast<size_t>(row * p.n + col)]), lost)
              << "row " << row << " col " << col << (prepared ? ", prepared" : "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
