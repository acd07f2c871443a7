// Two products side by side in D: support/side_by_side.hpp.
#include "support/side_by_side.hpp"

#include "kernels/sm100a_skinny/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm100aSkinnySideBySide, EveryType) {
  Rng rng;
  for (const int tile_n : {32, 64}) {
    for (Problem p : side_by_side_problems({DataType::kE2M1}, 128, tile_n, 528, rng)) {
      p.grouping = Grouping::kNone;
      p.m = (p.m - 1) % 128 + 1;
      expect_side_by_side(
          p,
          [&](RandomCase& data) {
            SkinnyRun run{.tile_n = tile_n};
            return simulate(data, run);
          },
          rng);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
