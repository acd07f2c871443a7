// From the measured points to a choice for any problem.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/int_math.hpp"
#include "cuda/kernels/sm90a/params.hpp"
#include "cuda/kernels/sm90a/tuning_table.hpp"

namespace dualgemm::cuda::sm90a {
namespace {

using core::ceil_div;

constexpr int64_t kTileStep = 8;  // tiles have a multiple of it: estimates change at no other m

using Rows = std::span<const TuningRow>;

// |log2| of the ratio.
double distance(int64_t a, int64_t b) {
  return std::abs(std::log2(static_cast<double>(std::max<int64_t>(a, 1))) -
                  std::log2(static_cast<double>(std::max<int64_t>(b, 1))));
}

bool same_shape(const TuningRow& a, const TuningRow& b) {
  return a.sms == b.sms && a.n == b.n && a.k == b.k;
}

// The rows of the nearest GPU and shape; the first of equally near ones.
Rows nearest_shape(Rows table, const Extents& extents, int num_sms) {
  const auto farness = [&](const TuningRow& row) {
    return std::pair(distance(row.sms, num_sms),
                     distance(row.n, extents.n * extents.l) + distance(row.k, extents.k));
  };
  const auto first = std::min_element(
      table.begin(), table.end(),
      [&](const TuningRow& a, const TuningRow& b) { return farness(a) < farness(b); });
  const auto last = std::find_if_not(first, table.end(),
                                     [&](const TuningRow& row) { return same_shape(row, *first); });
  return {first, last};
}

double estimate(const TuningRow& row, int64_t m) {
  return row.microseconds * static_cast<double>(ceil_div(m, row.tile_m)) /
         static_cast<double>(ceil_div(row.m, row.tile_m));
}

// lower.m < m < upper.m
bool takes_upper(const TuningRow& lower, const TuningRow& upper, int64_t m) {
  for (int64_t at = lower.m + 1; at <= m; at = at / kTileStep * kTileStep + kTileStep + 1) {
    if (estimate(upper, at) <= estimate(lower, at)) return true;
  }
  return false;
}

// Nine in ten SMs have a tile.
bool fills(const TuningRow& row, int64_t m, int64_t columns, int num_sms) {
  return ceil_div(m, row.tile_m) * ceil_div(columns, row.tile_n) * 10 >= int64_t{9} * num_sms;
}

// A k-tile of a tile of 128 rows or more, in hundredths of one of 128 by 64: 1.6 us on a cool H200.
int64_t k_tile_cost(const Config& config) {
  if (config.tile_m > 128) return 178;
  return tile_n_of(config) == kWideCols ? 139 : 100;
}

// What such tiles should take together, in the same unit. Sums that CTAs exchange take as long as
// so many k-tiles of the smallest: measured with (3072 and 4096, 7168) and (3072, 4096), 128 to
// 1024 rows, within 5 % (docs/lab/sm90a.md, "Tiles of 96 columns").
int64_t estimated_time(const Config& config, const Schedule& schedule) {
  constexpr int64_t kPairs = 260, kShared = 470, kSmallest = 128 * 64;
  const int64_t k_tiles = schedule.k_tiles.value, cost = k_tile_cost(config);
  const int64_t area = config.tile_m * tile_n_of(config);
  if (schedule.paired) return k_tiles * cost / 2 + kPairs * area / kSmallest;
  const int64_t waves = ceil_div(schedule.whole_tiles, schedule.ctas);
  const int64_t shared = ceil_div(schedule.shared_k_tiles, schedule.ctas);
  return (waves * k_tiles + shared) * cost + (shared > 0 ? kShared * area / kSmallest : 0);
}

Config wide_in_place_of(Config config) {
  config.tile_m = 128, config.n_warpgroups = kWideCols / kWarpgroupCols;
  return config;
}

}  // namespace

bool takes_wide_tiles(const Config& tuned, const Extents& extents, int num_sms,
                      bool batch_invariant) {
  constexpr int64_t kPercent = 98;
  if (tuned.tile_m < 128) return false;
  const auto time = [&](const Config& config) {
    const int64_t tiles =
        ceil_div(extents.m, config.tile_m) * ceil_div(extents.n, tile_n_of(config)) * extents.l;
    const Divisor k_tiles(static_cast<uint32_t>(ceil_div(extents.k, kTileK)));
    return estimated_time(
        config, pair_or_deal_out(config, tiles, k_tiles, std::max(num_sms, 1), batch_invariant));
  };
  return time(wide_in_place_of(tuned)) * 100 < time(tuned) * kPercent;
}

bool groups_take_wide_tiles(const Config& narrow, int64_t row_tiles, int64_t n, int64_t k,
                            int num_sms, bool batch_invariant) {
  constexpr int64_t kPercent = 97;
  const int64_t k_tiles = ceil_div(k, kTileK);
  // Where there are more tiles than can be counted the proportion decides, as with many.
  const int64_t most = INT32_MAX / k_tiles / ceil_div(n, tile_n_of(narrow));
  const auto time = [&](const Config& config) {
    const int64_t tiles = std::clamp<int64_t>(row_tiles, 1, std::max<int64_t>(most, 1)) *
                          ceil_div(n, tile_n_of(config));
    return estimated_time(
        config, deal_out(static_cast<uint32_t>(tiles), Divisor(static_cast<uint32_t>(k_tiles)),
                         static_cast<uint32_t>(std::max(num_sms, 1)), batch_invariant));
  };
  return time(wide_in_place_of(narrow)) * 100 < time(narrow) * kPercent;
}

const TuningRow& choose_row(std::span<const TuningRow> table, const Extents& extents, int num_sms) {
  const Rows rows = nearest_shape(table, extents, num_sms);
  const int64_t m = extents.m;
  auto row = std::lower_bound(rows.begin(), rows.end(), m,
                              [](const TuningRow& at, int64_t value) { return at.m < value; });
  if (row == rows.end()) {
    --row;
  } else if (row->m != m && row != rows.begin() && !takes_upper(*(row - 1), *row, m)) {
    --row;
  }
  constexpr int kLargestTile = 256;
  while (row != rows.begin() && row->tile_m == kLargestTile &&
         fills(*row, row->m, row->n, row->sms) && !fills(*row, m, extents.n * extents.l, num_sms)) {
    --row;
  }
  return *row;
}

}  // namespace dualgemm::cuda::sm90a
