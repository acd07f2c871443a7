// Linear scales of A beside prepared weights: read where they lie if rows do so at multiples of 16
// bytes, copied to scale tiles else. Either way with the bits of the kernel of one CTA, which reads
// tiles.
#include "core/int_math.hpp"
#include "kernels/simulation/results.hpp"
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

// Runs of the kernel that gives each pair a tile, with every tile; runs of persistent pairs, fewer
// than tiles and one.
std::vector<SimulatedRun> prepared_runs() {
  std::vector<SimulatedRun> runs;
  for (const int tile_n : {48, 64, 80, 96, 112, 128})
    runs.push_back({.tile_n = tile_n, .prepared = true});
  for (const int64_t ctas : {2, 4}) runs.push_back({.prepared = true, .persistent_ctas = ctas});
  return runs;
}

Problem problem_of(int64_t m, int64_t n, int64_t k, int64_t l) {
  Problem p{.m = m, .n = n, .k = k, .l = l, .d = {.type = DataType::kF32}};
  p.a.scale_ld = core::round_up(k / 16, 16);
  p.a.scale_batch_stride = l > 1 ? (m + 1) * p.a.scale_ld : 0;
  return p;
}

// `launches`: with the copies.
void expect_bits_of_one_cta(const Problem& p, size_t launches, int64_t misalign = 0) {
  SCOPED_TRACE(::testing::Message() << "m " << p.m << " k " << p.k << " l " << p.l << ", scale_ld "
                                    << p.a.scale_ld << ", misalign " << misalign);
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  const std::vector<uint8_t> expected =
      simulated_bits<SimulatedRun>(data, {.tile_n = 64, .one_cta = true});
  EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kTensorCoreStep));
  for (SimulatedRun run : prepared_runs()) {
    run.misalign = misalign;
    data.poison_d();
    ASSERT_TRUE(simulate(data, run));
    EXPECT_EQ(run.launches, launches);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), data.d.data.begin()))
        << run.tile_n << ", persistent CTAs: " << run.persistent_ctas;
  }
}

// Rows that end in either CTA and between pairs, one row, whole tiles; ends of k, also rings that
// go around.
TEST(Sm100aPairRowsOfScales, ReadWhereTheyLie) {
  expect_bits_of_one_cta(problem_of(1, 60, 16, 1), 1);
  expect_bits_of_one_cta(problem_of(100, 130, 544, 2), 1);
  expect_bits_of_one_cta(problem_of(256, 70, 2304, 1), 1);
  expect_bits_of_one_cta(problem_of(300, 260, 288, 3), 1);
}

// 34 scales a row, batches an odd number of bytes apart, and what begins at no multiple of 16
// bytes.
TEST(Sm100aPairRowsOfScales, OthersAreCopied) {
  Problem p = problem_of(140, 60, 544, 2);
  p.a.scale_batch_stride += 3;
  expect_bits_of_one_cta(p, 2);
  p = problem_of(140, 60, 544, 1);
  p.a.scale_ld = 34;
  expect_bits_of_one_cta(p, 2);
  expect_bits_of_one_cta(problem_of(140, 60, 512, 1), 3, 5);
}

// No warning and no advisory either.
TEST(Sm100aPairRowsOfScales, SameBitsInEverySchedule) {
  for (SimulatedRun run :
       {SimulatedRun{.tile_n = 48, .prepared = true}, SimulatedRun{.tile_n = 112, .prepared = true},
        SimulatedRun{.prepared = true, .persistent_ctas = 4}}) {
    const bool persistent = run.persistent_ctas != 0;
    Rng rng;
    const Problem p =
        problem_of(150, persistent ? 128 * 5 - 50 : 70, 256 * (persistent ? 7 : 17) - 64, 1);
    RandomCase data(p, rng, Values::kWide);
    expect_same_bits_in_schedules(data, run, 10, reference::Accumulation::kTensorCoreStep,
                                  [](const SimulatedRun& one) {
                                    ASSERT_TRUE(one.result.reports.list.empty())
                                        << ptxsim::to_string(one.result.reports.list.front());
                                  });
  }
}

}  // namespace
}  // namespace dualgemm::test
