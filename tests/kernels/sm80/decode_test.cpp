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

// The sums of two parts of k are beyond FP32, their total is 0: so it is before its power of two is
// restored, by warps and by CTAs that divide k.
TEST(Sm80Decode, PartsBeyondFp32OfATotalThatIsNot) {
  Rng rng;
  for (const int tile_m : {32, 64, 128}) {
    HandMade made(hand_made_problem(33, 16, 256, DataType::kBF16, ScaleLayout::kLinear), rng);
    RandomCase& data = made.data;
    HandMade::fill(data.gate, data.resolved.gate, 0, kOneScale);
    HandMade::fill(data.up, data.resolved.up, 0, kOneScale);
    made.fill_a(0.0f);
    for (int64_t row = 0; row < data.problem.m; ++row) {
      made.set_a(row, 0, 0x1p127f);
      made.set_a(row, 64, 0x1p127f);
    }
    for (int64_t col = 0; col < data.problem.n; ++col) {
      HandMade::set_code(data.gate, data.resolved.gate, col, 0, 7);    // 6
      HandMade::set_code(data.gate, data.resolved.gate, col, 64, 15);  // -6
    }
    EXPECT_TRUE(is_exact(std::move(made), SimulatedRun{.tile_m = tile_m, .k_parts = 4})) << tile_m;
  }
}

}  // namespace
}  // namespace dualgemm::test
