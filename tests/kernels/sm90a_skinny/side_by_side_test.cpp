// Two products side by side in D: support/side_by_side.hpp.
#include "support/side_by_side.hpp"

#include "kernels/sm90a_skinny/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm90aSkinnySideBySide, EveryTypeAndGrouping) {
  Rng rng;
  const std::vector<DataType> types{DataType::kE2M1, DataType::kF16, DataType::kBF16};
  int next = 0;
  for (const bool prepared : {false, true}) {
    for (Problem p : side_by_side_problems(types, 8, 32, 320, rng)) {
      if (p.grouping == Grouping::kNone)
        p.m = std::min<int64_t>(p.m, cuda::sm90a_skinny::most_rows(prepared));
      p.d.ld = 0;
      const SimulatedRun run{.max_ctas = 1 + next++ % 5, .prepared = prepared};
      expect_side_by_side(
          p, [&](RandomCase& data) { return simulate(data, run); }, rng);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
