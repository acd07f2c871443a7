// From the measured points to a choice for any problem.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/int_math.hpp"
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

}  // namespace

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
