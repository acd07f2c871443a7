// Every code with every scale, as a weight and as an activation, against values written out by
// hand, and the ends of the range. What depends on the decoding alone is tried with one instance.
#include "kernels/simulation/results.hpp"
#include "kernels/sm90a/simulated_run.hpp"

namespace dualgemm::test {
namespace {

constexpr int kTokens = 256, kCtas = 4;  // the fewest tiles

TEST(Sm90aDecode, EveryCodeTimesEveryScaleIsExact) {
  Rng rng;
  for (const bool prepared : {false, true}) {
    const SimulatedRun run{.tile_m = kTokens, .max_ctas = kCtas, .prepared = prepared};
    for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
      for (const bool in_gate : {true, false}) {
        const ScaleLayout layout = in_gate ? ScaleLayout::kLinear : ScaleLayout::kSwizzled128x4;
        EXPECT_TRUE(is_exact(every_weight(type, in_gate, layout, rng), run)) << name_of(type);
      }
    }
    for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
      EXPECT_TRUE(is_exact(every_activation(layout, rng), run)) << name_of(layout);
    }
  }
}

TEST(Sm90aDecode, TheEndsOfTheRange) {
  Rng rng;
  for (const bool prepared : {false, true}) {
    const SimulatedRun run{
        .tile_m = 16, .tile_n = 32, .k_warpgroups = 4, .max_ctas = 3, .prepared = prepared};
    for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
      EXPECT_TRUE(is_exact(extreme_scales(true, type, rng), run)) << name_of(type);
      EXPECT_TRUE(is_exact(extreme_scales(false, type, rng), run)) << name_of(type);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
