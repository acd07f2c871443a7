// Every code with every scale, bit for bit.
#include "kernels/simulation/results.hpp"
#include "kernels/sm90a_skinny/simulated_run.hpp"
#include "support/hand_made.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm90aSkinnyExact, EveryCodeTimesEveryScale) {
  Rng rng;
  const auto is_exact = [](HandMade made) -> ::testing::AssertionResult {
    for (const bool prepared : {false, true}) {
      const SimulatedRun run{.cols = 32, .max_ctas = 2, .prepared = prepared};
      made.data.poison_d();
      if (auto result = simulate(made.data, run); !result) return result;
      auto result = made.is(bits_of(made.data));
      if (!result) return result << (prepared ? ", prepared" : "");
    }
    return ::testing::AssertionSuccess();
  };
  int next = 0;
  for (Rows rows{.first = 0, .count = 8}; rows.first < 256; rows.first += 8) {
    const ScaleLayout layout = ++next % 2 == 0 ? ScaleLayout::kLinear : ScaleLayout::kSwizzled128x4;
    EXPECT_TRUE(is_exact(every_weight(kTypesOfA[next % 3], next % 4 < 2, layout, rng, rows)))
        << "rows from " << rows.first;
    EXPECT_TRUE(is_exact(every_activation(layout, rng, rows))) << "rows from " << rows.first;
  }
  for (const bool largest : {true, false})
    EXPECT_TRUE(is_exact(extreme_scales(largest, DataType::kF32, rng, 8))) << largest;
}

}  // namespace
}  // namespace dualgemm::test
