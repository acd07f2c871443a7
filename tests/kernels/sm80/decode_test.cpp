// Every code with every scale, as a weight and as an activation, against values written out by
// hand, and the ends of the range, with both tiles.
#include "kernels/sm80/simulated_run.hpp"
#include "support/hand_made.hpp"

namespace dualgemm::test {
namespace {

::testing::AssertionResult is_exact(HandMade made, const SimulatedRun& run) {
  made.data.poison_d();
  if (auto result = simulate(made.data, run); !result) return result;
  return made.is({made.data.d.data.begin(), made.data.d.data.end()});
}

TEST(Sm80Decode, EveryCodeTimesEveryScaleIsExact) {
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    for (const bool in_gate : {true, false}) {
      const ScaleLayout layout = in_gate ? ScaleLayout::kLinear : ScaleLayout::kSwizzled128x4;
      EXPECT_TRUE(is_exact(every_weight(type, in_gate, layout, rng), {})) << name_of(type);
    }
  }
  for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
    EXPECT_TRUE(is_exact(every_activation(layout, rng), {})) << name_of(layout);
  }
}

TEST(Sm80Decode, TheEndsOfTheRange) {
  Rng rng;
  for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
    for (const int tile_m : {8, 64}) {
      EXPECT_TRUE(is_exact(extreme_scales(true, type, rng), {.tile_m = tile_m})) << name_of(type);
      EXPECT_TRUE(is_exact(extreme_scales(false, type, rng), {.tile_m = tile_m})) << name_of(type);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
