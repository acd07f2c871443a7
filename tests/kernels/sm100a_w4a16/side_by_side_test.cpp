// Two products side by side in D: support/side_by_side.hpp.
#include "support/side_by_side.hpp"

#include "kernels/sm100a_w4a16/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm100aW4a16SideBySide, EveryType) {
  Rng rng;
  for (Problem p : side_by_side_problems({DataType::kF16, DataType::kBF16}, 64, 64, 528, rng)) {
    p.grouping = Grouping::kNone;
    p.m = (p.m - 1) % 64 + 1;
    expect_side_by_side(
        p,
        [&](RandomCase& data) {
          W4a16Run run{.split = p.k > 256 ? 2 : 1};
          return simulate(data, run);
        },
        rng);
  }
}

}  // namespace
}  // namespace dualgemm::test
