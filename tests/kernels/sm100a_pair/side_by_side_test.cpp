// Two products side by side in D: support/side_by_side.hpp.
#include "support/side_by_side.hpp"

#include "kernels/sm100a_pair/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm100aPairSideBySide, EveryType) {
  Rng rng;
  for (const int tile_n : {64, 128}) {
    for (Problem p : side_by_side_problems({DataType::kE2M1}, 128, tile_n, 272, rng)) {
      p.grouping = Grouping::kNone;
      expect_side_by_side(
          p,
          [&](RandomCase& data) {
            SimulatedRun run{.tile_n = tile_n};
            return simulate(data, run);
          },
          rng);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
