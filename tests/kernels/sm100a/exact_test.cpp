// Each accumulator by itself, bit for bit the oracle's.
#include <algorithm>

#include "kernels/simulation/results.hpp"
#include "kernels/sm100a/simulated_run.hpp"

namespace dualgemm::test {
namespace {

// Makes one operand a matrix of ones in its first 16-block and zeros elsewhere: times anything, the
// product is the sum of the other's first 16-block.
void fill_with_selector(Operand& operand, const core::ResolvedMatrix& matrix, int64_t batches) {
  const ScaleMap map = matrix.scale_map();
  for (int64_t l = 0; l < batches; ++l) {
    for (int64_t row = 0; row < matrix.rows; ++row) {
      const int64_t begin = (l * matrix.batch_stride + row * matrix.ld) / 2;
      for (int64_t i = 0; i < matrix.cols / 2; ++i) operand.data[begin + i] = i < 8 ? 0x22 : 0;
      for (int64_t i = 0; i < matrix.sf_cols; ++i) {
        operand.scales[l * matrix.scale_batch_stride + map(row, i)] = 0x38;
      }
    }
  }
}

// The other product is made 8 for every element, so D is 8 times the one that is looked at: exact.
TEST(Sm100aExact, EachAccumulatorAlone) {
  for (const bool look_at_gate : {true, false}) {
    Problem p = swizzled({.m = 128, .n = 130, .k = 768, .d = {.type = DataType::kF32}});
    p.act.kind = ActivationKind::kIdentity;
    Rng rng;
    RandomCase data(p, rng, Values::kExact);
    // Every row of a begins with a block of which the selector makes 16 * 1/2 * 1 = 8.
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t i = 0; i < 8; ++i) data.a.data[row * p.k / 2 + i] = 0x11;
      data.a.scales[data.resolved.a.scale_map()(row, 0)] = 0x38;
    }
    fill_with_selector(look_at_gate ? data.up : data.gate,
                       look_at_gate ? data.resolved.up : data.resolved.gate, 1);
    const std::vector<float> got = simulated<SimulatedRun>(data, {}), want = expected(data);
    EXPECT_EQ(got, want);
    EXPECT_LT(std::count(want.begin(), want.end(), 0.0f), 100) << "nothing to compare";
  }
}

}  // namespace
}  // namespace dualgemm::test
