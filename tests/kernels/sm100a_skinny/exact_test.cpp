// Inputs whose sums are exact: the accumulators must be the oracle's, bit for bit, through an
// identity epilogue; the bits are those of every other tile and of the kernel for more rows; and
// what NaN may and may not reach.
#include <cmath>

#include "cuda/kernels/sm100a/launch.hpp"
#include "kernels/simulation/results.hpp"
#include "kernels/sm100a_skinny/simulated_run.hpp"
#include "reference/dual_gemm.hpp"

namespace dualgemm::test {
namespace {

// By the kernel of 128 rows, whose MMA has the operands the other way around.
std::vector<float> by_many_rows(RandomCase& data) {
  namespace sm100a = cuda::sm100a;
  data.poison_d();
  Simulation simulation(data, 0);
  const auto launches =
      sm100a::build_launches(data.resolved, simulation.buffers(), {}, nullptr,
                             *sm100a::find_instance(64, DataType::kF32), simulated_encode_tiled());
  EXPECT_TRUE(launches.ok()) << launches.status().message();
  for (const cuda::KernelLaunch& launch : *launches) EXPECT_TRUE(simulation.run(launch, {}));
  simulation.download_d(data);
  return result_of(data);
}

TEST(Sm100aSkinnyExact, ProductsAreTheOraclesBitForBit) {
  for (const auto& instance : cuda::sm100a_skinny::instances()) {
    const auto& [tile_m, tile_n, grouped, prepared] = instance.config;
    Problem p =
        swizzled({.m = tile_m - 3, .n = 136, .k = 1344, .l = 2, .d = {.type = DataType::kF32}});
    p.act.kind = ActivationKind::kIdentity;
    p.bias = tile_n == 64 ? BiasType::kF32 : BiasType::kBF16;
    Rng rng;
    RandomCase data(p, rng, Values::kExact);
    // g * u of exact g and u is rounded once, by both to the nearest.
    const auto got = simulated<SkinnyRun>(data, {.tile_n = tile_n, .tile_m = tile_m});
    data.poison_d();
    ASSERT_TRUE(reference::dual_gemm(data.problem, data.buffers()).ok());
    EXPECT_EQ(got, result_of(data)) << instance.entry;
  }
}

TEST(Sm100aSkinnyExact, RowsDoNotDependOnTheTileOrTheKernel) {
  Problem p = swizzled({.m = 8, .n = 128, .k = 512, .d = {.type = DataType::kF32}});
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  const std::vector<float> bits = by_many_rows(data);
  for (const auto& instance : cuda::sm100a_skinny::instances()) {
    const auto& [tile_m, tile_n, grouped, prepared] = instance.config;
    EXPECT_EQ(bits, simulated<SkinnyRun>(data, {.tile_n = tile_n, .tile_m = tile_m}))
        << instance.entry;
  }
  EXPECT_EQ(bits, simulated<SkinnyRun>(data, {.tile_n = 64, .misalign = 3}));
}

// A NaN scale reaches the row or column it belongs to, and nothing else. Elsewhere the padding,
// which RandomCase fills with NaN, would already have shown.
TEST(Sm100aSkinnyExact, NanScalesReachTheirRowOrColumn) {
  for (const int tile_n : {32, 64}) {
    Problem p = swizzled({.m = 40, .n = 140, .k = 128, .d = {.type = DataType::kF32}});
    Rng rng;
    RandomCase data(p, rng, Values::kRandom);
    data.a.scales[data.resolved.a.scale_map()(31, 5)] = 0x7F;
    data.gate.scales[data.resolved.gate.scale_map()(2, 0)] = 0xFF;
    data.gate.scales[data.resolved.gate.scale_map()(100, 4)] = 0x7F;
    data.up.scales[data.resolved.up.scale_map()(69, 7)] = 0x7F;
    data.up.scales[data.resolved.up.scale_map()(139, 1)] = 0x7F;
    const std::vector<float> got = simulated<SkinnyRun>(data, {.tile_n = tile_n});
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t col = 0; col < p.n; ++col) {
        const bool lost = row == 31 || col == 2 || col == 100 || col == 69 || col == 139;
        ASSERT_EQ(std::isnan(got[static_cast<size_t>(row * p.n + col)]), lost)
            << "row " << row << " col " << col << " tile_n " << tile_n;
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
