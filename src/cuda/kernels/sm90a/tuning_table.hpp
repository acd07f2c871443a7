// What was measured on GPUs to run a problem best, and what follows from it for other problems.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/sm90a/config.hpp"

namespace dualgemm::cuda::sm90a {

// The extents of a problem whose rows are no groups.
struct Extents {
  int64_t m, n, k, l;
};

// The best of the compiled instances at one measured point: m rows of A by n columns of D, k.
struct TuningRow {
  int sms;
  int64_t n, k, m;
  int tile_m, tile_n, k_warpgroups;
  double microseconds;
};

// By sms, n, k, then m; with m, tile_m does not decrease. Made by scripts/tune_sm90a.
std::span<const TuningRow> tuning_table();

// The row that decides for such a problem on a GPU of num_sms SMs; `table` is ordered like
// tuning_table() and not empty. At a row's own point: that row. Else one of the rows of the
// measured GPU and shape that are nearest (ratios of SMs, then of n*l and of k):
//   - below the first and above the last m: the first, the last row;
//   - between two rows: the upper one from the first m on at which its tiles are estimated to take
//     no longer than the lower one's, by each row's time per row of tiles;
//   - a tile of 256 rows that kept the SMs busy where it was measured, and would not do so here,
//     makes way for the row below.
// With growing m tile_m never decrease.
const TuningRow& choose_row(std::span<const TuningRow> table, const Extents& extents, int num_sms);

// Whether tiles of 128 rows by kWideCols columns should take 2 % less than those of `tuned`; in
// place of tiles of fewer than 128 rows they never do.
inline constexpr int kWideCols = 3 * kWarpgroupCols;
bool takes_wide_tiles(const Config& tuned, const Extents& extents, int num_sms,
                      bool batch_invariant);
// The same of groups whose rows are `row_tiles` tiles of 128, in place of `narrow`, 128 rows by 64
// columns; 3 % less.
bool groups_take_wide_tiles(const Config& narrow, int64_t row_tiles, int64_t n, int64_t k,
                            int num_sms, bool batch_invariant);

}  // namespace dualgemm::cuda::sm90a
