// The kernels for CTAs with more than one tile: how columns are dealt out, and that warps which are
// a tile apart, and tiles narrower than the others, give the bits of a CTA for each tile.
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm90a_skinny/simulated_run.hpp"
#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/nvfp4_output.hpp"

namespace dualgemm::test {
namespace {

namespace skinny = cuda::sm90a_skinny;

constexpr int64_t kUnit = 8;  // columns

std::vector<uint8_t> bytes_of_d(const RandomCase& data) {
  return {data.d.data.begin(), data.d.data.end()};
}

// From 2 CTAs of one tile of 32 columns to three waves, every number of units between, the last one
// ragged: whole tiles, narrow ones of 1, 2 and 3 units, fewer of these than CTAs.
TEST(Sm90aSkinnyManyTiles, EveryNumberOfUnits) {
  int next = 0;
  for (int64_t units = 8; units <= 25; ++units) {
    for (const int64_t m : {3, 13}) {
      Problem p{.m = m, .n = units * kUnit - next % 8, .k = 64 * (1 + next % 35)};
      p.a.type = kTypesOfA[++next % 3];
      p.d.type = DataType::kF32;
      SCOPED_TRACE(::testing::Message() << "n " << p.n << ", m " << m << ", k " << p.k);
      Rng rng;
      RandomCase data(p, rng, Values::kWide);
      for (int64_t row = 0; row < m; ++row) data.a_row_scale.push_back(rng.uniform(0.5f, 2.0f));
      ASSERT_TRUE(simulate(data, {.cols = 32, .max_ctas = 2, .prepared = true}));
      EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
      const std::vector<uint8_t> many = bytes_of_d(data);
      data.poison_d();
      ASSERT_TRUE(simulate(data, {.cols = 32, .max_ctas = 7, .prepared = true}));
      EXPECT_EQ(many, bytes_of_d(data));
    }
  }
}

// A narrow tile has whole blocks of 16 columns.
TEST(Sm90aSkinnyManyTiles, Nvfp4Output) {
  for (const int64_t blocks : {4, 5, 6, 7, 8}) {
    for (const bool swizzled : {true, false}) {
      const Problem p =
          with_nvfp4_output({.m = 5, .n = blocks * 16, .k = 320}, swizzled, blocks % 2 == 0);
      TwoOutputs both(p);
      const SimulatedRun run{.cols = 32, .max_ctas = 2, .prepared = true};
      ASSERT_TRUE(simulate(both.wide, run));
      ASSERT_TRUE(simulate(both.narrow, run));
      EXPECT_TRUE(both.agree()) << blocks;
    }
  }
}

// With batches all tiles are equally wide, and each batch has an A of its own.
TEST(Sm90aSkinnyManyTiles, Batches) {
  for (const DataType type : kTypesOfA) {
    Problem p{.m = 6, .n = 72, .k = 1024 + 64, .l = 3, .a = {.type = type}};
    p.d.type = DataType::kF32;
    Rng rng;
    RandomCase data(p, rng, Values::kRandom);
    ASSERT_TRUE(simulate(data, {.cols = 32, .max_ctas = 2, .prepared = true}));
    EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
  }
}

void expect_same_in_schedules(int64_t m, DataType type) {
  Problem p{.m = m, .n = 2 * 3 * 32 + 2 * 16, .k = 64 * 19, .a = {.type = type}};
  p.d.type = DataType::kF32;
  Rng rng;
  RandomCase data(p, rng, Values::kWide);
  const SimulatedRun run{.cols = 32, .max_ctas = 2, .prepared = true};
  expect_same_bits_in_schedules(data, run, 20, reference::Accumulation::kAnyOrder);
}

TEST(Sm90aSkinnyManyTiles, TheSameBitsInAllSchedules) {
  expect_same_in_schedules(7, DataType::kE2M1);
}
TEST(Sm90aSkinnyManyTiles, TheSameBitsOfSixteenRowsInAllSchedules) {
  expect_same_in_schedules(15, DataType::kF16);
}

TEST(Sm90aSkinnyManyTiles, HowColumnsAreDealtOut) {
  struct Case {
    int64_t n, tiles, wide, narrow;
    DataType d = DataType::kF16;
    int64_t l = 1;
  };
  for (const Case& c :
       {Case{4096, 128, 128, 0}, Case{4224, 132, 132, 0}, Case{4225, 133, 132, 1},
        Case{14336, 500, 396, 2}, Case{11008, 371, 264, 3}, Case{28672, 896, 896, 0},
        Case{8448, 264, 264, 0}, Case{5280, 264, 132, 1}, Case{5280, 198, 132, 2, DataType::kE2M1},
        Case{14336, 448, 448, 0, DataType::kF16, 2}}) {
    Problem p{.m = 1, .n = c.n, .k = 4096, .l = c.l};
    p.d.type = c.d;
    const skinny::Instance& instance =
        skinny::launched_instance(p, *skinny::find_instance(p, 32, true), 132);
    EXPECT_EQ(instance.config.many, c.n > 4224) << c.n;
    const skinny::Split split = skinny::split_of(p, instance.config, 132);
    EXPECT_EQ(split.tiles, c.tiles) << c.n;
    EXPECT_EQ(split.wide_tiles, c.wide) << c.n;
    EXPECT_EQ(split.narrow_units, c.narrow) << c.n;
  }
}

}  // namespace
}  // namespace dualgemm::test
