// Every code with every scale, as a weight and as an activation, against values written out by
// hand, and the ends of the range, as they lie and prepared.
#include "kernels/simulation/results.hpp"
#include "kernels/sm80/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm80Decode, EveryCodeTimesEveryScaleIsExact) {
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    for (const bool in_gate : {true, false}) {
      const ScaleLayout layout = in_gate ? ScaleLayout::kLinear : ScaleLayout::kSwizzled128x4;
      for (const bool prepared : {false, true}) {
        EXPECT_TRUE(
            is_exact(every_weight(type, in_gate, layout, rng), SimulatedRun{.prepared = prepared}))
            << name_of(type);
      }
    }
  }
  for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
    EXPECT_TRUE(is_exact(every_activation(layout, rng), SimulatedRun{})) << name_of(layout);
  }
}

TEST(Sm80Decode, TheEndsOfTheRange) {
  Rng rng;
  for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
    for (const int tile_m : {8, 128}) {
      EXPECT_TRUE(is_exact(extreme_scales(true, type, rng), SimulatedRun{.tile_m = tile_m}))
          << name_of(type);
      EXPECT_TRUE(is_exact(extreme_scales(false, type, rng), SimulatedRun{.tile_m = tile_m}))
          << name_of(type);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
