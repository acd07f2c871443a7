// Two products side by side in D: support/side_by_side.hpp.
#include "support/side_by_side.hpp"

#include "kernels/sm80/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm80SideBySide, EveryTypeAndGrouping) {
  Rng rng;
  const std::vector<DataType> types{DataType::kE2M1, DataType::kF16, DataType::kBF16};
  for (const int tile_m : {8, 64}) {
    for (const Problem& p : side_by_side_problems(types, tile_m, 32, 304, rng)) {
      const bool compiled =
          cuda::sm80::find_instance(p, tile_m, 0, cuda::sm80::fused_pass(p)) != nullptr;
      const SimulatedRun run{.tile_m = compiled ? tile_m : 0, .misalign = rng.integer(0, 3)};
      expect_side_by_side(
          p, [&](RandomCase& data) { return simulate(data, run); }, rng);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
