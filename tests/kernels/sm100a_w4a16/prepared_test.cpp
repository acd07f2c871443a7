// Prepared weights: the bits of unpacked ones, on every shape that has ends of its own, and exact.
#include "kernels/simulation/results.hpp"
#include "kernels/sm100a_w4a16/simulated_run.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

void expect_prepared_right(const Problem& p, W4a16Run run, Values values = Values::kRandom) {
  run.prepared = true;
  SCOPED_TRACE(describe(p, run));
  Rng rng;
  RandomCase data(p, rng, values);
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
  const std::vector<uint8_t> bits(data.d.data.begin(), data.d.data.end());
  run.prepared = false;
  data.poison_d();
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(std::equal(bits.begin(), bits.end(), data.d.data.begin()));
}

TEST(Sm100aW4a16Prepared, RowsColumnsAndSplits) {
  int next = 0;
  for (const int64_t m : {1, 16, 17, 33, 64, 70}) {
    for (const int64_t n : {1, 9, 63, 72, 130}) {
      const DataType type = type_of_rows(next);
      expect_prepared_right(with_rows({.m = m, .n = n, .k = 1040}, type), {.split = 1 + next % 4});
      ++next;
    }
  }
}

TEST(Sm100aW4a16Prepared, EveryEndOfK) {
  for (int64_t k = 16; k <= 336; k += 16)
    expect_prepared_right(with_rows({.m = 3, .n = 70, .k = k}, type_of_rows(k / 16)), {});
}

TEST(Sm100aW4a16Prepared, RingsBatchesStridesAndEveryScale) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    Problem p{.m = 40, .n = 70, .k = 256 * 13 - 48, .l = 2, .d = {.type = DataType::kF32}};
    p = with_rows(p, type);
    p.gate.ld = p.k + 10;
    p.up.scale_batch_stride = 1024 * 60 + 7;
    expect_prepared_right(p, {.split = 2, .misalign = 3}, Values::kWide);
    expect_prepared_right(p, {.split = 1}, Values::kWide);
  }
}

TEST(Sm100aW4a16Prepared, ProductsAreTheOraclesBitForBit) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    Problem p = with_rows({.m = 61, .n = 136, .k = 1808, .d = {.type = DataType::kF32}}, type);
    p.act.kind = ActivationKind::kIdentity;
    Rng rng;
    RandomCase data(p, rng, Values::kExact);
    const auto got = simulated<W4a16Run>(data, {.split = 3, .prepared = true});
    EXPECT_EQ(got, expected(data)) << name_of(type);
  }
}

TEST(Sm100aW4a16Prepared, TheSameInEverySchedule) {
  using ptxsim::Schedule;
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    const Problem p =
        with_rows({.m = 20, .n = 66, .k = 256 * 17 - 64, .d = {.type = DataType::kF32}}, type);
    Rng rng;
    RandomCase data(p, rng, Values::kWide);
    const std::vector<float> bits = simulated<W4a16Run>(data, {.split = 2, .prepared = true});
    for (const Schedule schedule : {Schedule::kLazy, Schedule::kRandom}) {
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        W4a16Run run{.split = 2, .prepared = true};
        run.options.schedule = schedule;
        run.options.seed = seed;
        data.poison_d();
        ASSERT_TRUE(simulate(data, run)) << describe(run.options);
        ASSERT_EQ(bits, result_of(data)) << describe(run.options);
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
