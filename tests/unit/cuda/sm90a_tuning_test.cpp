// The tuning table of the Hopper kernel and the choice between its points. Needs no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/kernels/sm90a/tuning_table.hpp"
#include "support/rng.hpp"

namespace dualgemm::test {
namespace {

using cuda::sm90a::choose_row;
using cuda::sm90a::Extents;
using cuda::sm90a::tuning_table;
using cuda::sm90a::TuningRow;

Extents at(int64_t m, int64_t n, int64_t k) { return {.m = m, .n = n, .k = k, .l = 1}; }

TEST(Sm90aTuning, RowsAreOrderedAndCompiled) {
  ASSERT_FALSE(tuning_table().empty());
  const TuningRow* before = nullptr;
  for (const TuningRow& row : tuning_table()) {
    SCOPED_TRACE(::testing::Message()
                 << row.sms << " SMs, n " << row.n << ", k " << row.k << ", m " << row.m);
    for (const bool bf16 : {false, true}) {
      for (const bool prepared : {false, true}) {
        const auto* const instance =
            cuda::sm90a::find_instance(row.tile_m, row.tile_n, row.k_warpgroups, bf16, prepared);
        ASSERT_NE(instance, nullptr);
        EXPECT_EQ(instance->config.bf16, bf16);
        EXPECT_EQ(instance->config.prepared, prepared);
      }
    }
    EXPECT_GT(row.microseconds, 0.0);
    if (before != nullptr) {
      const auto key = [](const TuningRow& r) { return std::tuple(r.sms, r.n, r.k, r.m); };
      EXPECT_LT(key(*before), key(row));
      const bool same_shape = before->sms == row.sms && before->n == row.n && before->k == row.k;
      EXPECT_TRUE(!same_shape || before->tile_m <= row.tile_m);
    }
    before = &row;
  }
}

TEST(Sm90aTuning, AtItsOwnPointARowDecides) {
  for (const TuningRow& row : tuning_table()) {
    EXPECT_EQ(&choose_row(tuning_table(), at(row.m, row.n, row.k), row.sms), &row) << "m " << row.m;
    for (const DataType type : {DataType::kE2M1, DataType::kBF16}) {
      const Problem problem{.m = row.m, .n = row.n, .k = row.k, .a = {.type = type}};
      for (const bool prepared : {false, true}) {
        const bool bf16 = type == DataType::kBF16;
        const auto* const tuned =
            cuda::sm90a::find_instance(row.tile_m, row.tile_n, row.k_warpgroups, bf16, prepared);
        const auto* const wide =
            cuda::sm90a::find_instance(128, cuda::sm90a::kWideCols, 1, bf16, prepared);
        const bool takes_wide =
            cuda::sm90a::takes_wide_tiles(tuned->config, at(row.m, row.n, row.k), row.sms, false);
        EXPECT_EQ(&cuda::sm90a::choose_instance(problem, row.sms, prepared),
                  takes_wide ? wide : tuned);
        // Measured: they fill 132 SMs where 64 columns do not.
        EXPECT_EQ(takes_wide, row.n == 3072 && (row.m == 256 || row.m == 512 || row.m == 1024))
            << row.m << " " << row.n << " " << row.k;
      }
    }
  }
}

// For any shape on any GPU: a row of the table, and a tile_m that never decreases with m.
TEST(Sm90aTuning, TokensGrowWithTheRows) {
  Rng rng;
  for (int round = 0; round < 200; ++round) {
    const int64_t n = rng.integer(1, 20000), k = 16 * rng.integer(1, 2000);
    const int sms = static_cast<int>(rng.integer(1, 160));
    const TuningRow* before = nullptr;
    for (int64_t m = 1; m < 6000; m += rng.integer(1, 40)) {
      const TuningRow& row = choose_row(tuning_table(), at(m, n, k), sms);
      const auto table = tuning_table();
      ASSERT_TRUE(&row >= table.data() && &row < table.data() + table.size());
      if (before != nullptr) {
        ASSERT_LE(before->tile_m, row.tile_m)
            << "n " << n << " k " << k << ", " << sms << " SMs, m " << m;
      }
      before = &row;
    }
  }
}

// Tables that exist only here.
TEST(Sm90aTuning, TheNearestShapeIsTaken) {
  constexpr TuningRow kTable[] = {{100, 1024, 1024, 8, 8, 32, 4, 10.0},
                                  {100, 1024, 4096, 8, 16, 32, 4, 10.0},
                                  {100, 4096, 1024, 8, 32, 32, 3, 10.0},
                                  {200, 1024, 1024, 8, 64, 64, 2, 10.0}};
  const auto tile_m = [&](int64_t n, int64_t k, int sms, int64_t l = 1) {
    return choose_row(kTable, {.m = 8, .n = n, .k = k, .l = l}, sms).tile_m;
  };
  EXPECT_EQ(tile_m(1000, 1000, 100), 8);
  EXPECT_EQ(tile_m(1024, 2100, 100), 16);
  EXPECT_EQ(tile_m(2100, 1024, 100), 32);
  EXPECT_EQ(tile_m(1024, 1024, 100, 4), 32) << "batches count as columns";
  EXPECT_EQ(tile_m(1024, 2048, 100), 8) << "equally near: the first";
  EXPECT_EQ(tile_m(4096, 1024, 180), 64) << "the GPU counts first";
}

TEST(Sm90aTuning, BetweenRowsTheUpperOneBeginsWhereItIsNoSlower) {
  // Tiles of 128 cost 20 a piece, of 256 30; 1000 columns leave no tile idle.
  constexpr TuningRow kTable[] = {{10, 1024, 1024, 128, 128, 64, 1, 20.0},
                                  {10, 1024, 1024, 1024, 256, 64, 1, 120.0}};
  const auto tile_m = [&](int64_t m) { return choose_row(kTable, at(m, 1024, 1024), 10).tile_m; };
  EXPECT_EQ(tile_m(1), 128);
  EXPECT_EQ(tile_m(128), 128);
  EXPECT_EQ(tile_m(129), 256) << "one tile at 30 against two at 20";
  EXPECT_EQ(tile_m(100000), 256);
  constexpr TuningRow kDear[] = {{10, 1024, 1024, 128, 128, 64, 1, 20.0},
                                 {10, 1024, 1024, 1024, 256, 64, 1, 152.0}};
  const auto dear = [&](int64_t m) { return choose_row(kDear, at(m, 1024, 1024), 10).tile_m; };
  EXPECT_EQ(dear(256), 256) << "one tile at 38 against two at 20";
  constexpr TuningRow kDearer[] = {{10, 1024, 1024, 128, 128, 64, 1, 20.0},
                                   {10, 1024, 1024, 1024, 256, 64, 1, 168.0}};
  const auto dearer = [&](int64_t m) { return choose_row(kDearer, at(m, 1024, 1024), 10).tile_m; };
  EXPECT_EQ(dearer(256), 128) << "one tile at 42 against two at 20";
  EXPECT_EQ(dearer(1023), 128);
  EXPECT_EQ(dearer(1024), 256) << "measured";
}

// Tiles of 256 rows are for shapes with enough of them.
TEST(Sm90aTuning, LargeTilesMustFillTheGpu) {
  const auto tile_m = [](int64_t m, int64_t n) {
    return choose_row(tuning_table(), at(m, n, 7168), 132).tile_m;
  };
  EXPECT_EQ(tile_m(512, 4096), 256);
  EXPECT_EQ(tile_m(512, 512), 128) << "16 tiles for 132 SMs";
  EXPECT_EQ(tile_m(4096, 512), 256) << "128 tiles";
}

TEST(Sm90aTuning, BatchInvarianceTakesNoPhases) {
  for (int64_t m = 1; m < 2000; m += 7) {
    const Problem problem{.m = m, .n = 4096, .k = 7168, .batch_invariant = true};
    for (const bool prepared : {false, true})
      EXPECT_EQ(cuda::sm90a::choose_instance(problem, 132, prepared).config.k_warpgroups, 1)
          << "m " << m;
  }
}

}  // namespace
}  // namespace dualgemm::test
