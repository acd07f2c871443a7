// Comparisons of matrices that say where they differ: the worst element, how many, and a map of the
// tiles.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>

namespace dualgemm::test {

// A map with one character for a tile: '.' good, '#' bad; at most 64 x 64 characters.
template <class IsBad>
std::string tile_map(int64_t rows, int64_t cols, const IsBad& is_bad) {
  const int64_t tile_rows = std::max<int64_t>(1, (rows + 63) / 64),
                tile_cols = std::max<int64_t>(1, (cols + 63) / 64);
  std::ostringstream map;
  map << "map, one character for " << tile_rows << " x " << tile_cols << " elements:\n";
  for (int64_t r = 0; r < rows; r += tile_rows) {
    for (int64_t c = 0; c < cols; c += tile_cols) {
      bool bad = false;
      for (int64_t i = r; i < std::min(rows, r + tile_rows) && !bad; ++i) {
        for (int64_t j = c; j < std::min(cols, c + tile_cols) && !bad; ++j) bad = is_bad(i, j);
      }
      map << (bad ? '#' : '.');
    }
    map << '\n';
  }
  return map.str();
}

// Equal bit for bit: -0 differs from 0, and NaNs must agree in every bit. ld in elements.
template <class T>
::testing::AssertionResult same_bits(const T* got, int64_t got_ld, const T* want, int64_t want_ld,
                                     int64_t rows, int64_t cols) {
  const auto differs = [&](int64_t i, int64_t j) {
    return std::memcmp(got + i * got_ld + j, want + i * want_ld + j, sizeof(T)) != 0;
  };
  int64_t count = 0, first_row = -1, first_col = -1;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      if (!differs(i, j)) continue;
      if (count++ == 0) first_row = i, first_col = j;
    }
  }
  if (count == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << count << " of " << rows * cols << " elements differ, first at (" << first_row << ", "
         << first_col << "): got " << +got[first_row * got_ld + first_col] << ", want "
         << +want[first_row * want_ld + first_col] << '\n'
         << tile_map(rows, cols, differs);
}

template <class T>
::testing::AssertionResult same_bits(const T* got, const T* want, int64_t count) {
  return same_bits(got, count, want, count, 1, count);
}

// |got(i,j) - want(i,j)| <= bound(i,j), everywhere; NaN matches NaN only, infinity the same
// infinity only. The three are functions (row, col) -> double.
template <class Got, class Want, class Bound>
::testing::AssertionResult within(int64_t rows, int64_t cols, const Got& got, const Want& want,
                                  const Bound& bound) {
  const auto excess = [&](int64_t i, int64_t j) -> double {  // > 1 = bad
    const double g = got(i, j), w = want(i, j);
    if (std::isnan(g) && std::isnan(w)) return 0.0;
    if (g == w) return 0.0;
    const double ratio = std::abs(g - w) / bound(i, j);
    return std::isnan(ratio) ? HUGE_VAL : ratio;  // one NaN, opposite infinities, bound of 0/0
  };
  int64_t bad = 0, worst_row = 0, worst_col = 0;
  double worst = -1.0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      const double e = excess(i, j);
      bad += !(e <= 1.0);
      if (e > worst) worst = e, worst_row = i, worst_col = j;
    }
  }
  if (bad == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << bad << " of " << rows * cols << " elements beyond their bound, worst at (" << worst_row
         << ", " << worst_col << "): got " << got(worst_row, worst_col) << ", want "
         << want(worst_row, worst_col) << ", bound " << bound(worst_row, worst_col) << '\n'
         << tile_map(rows, cols, [&](int64_t i, int64_t j) { return !(excess(i, j) <= 1.0); });
}

}  // namespace dualgemm::test
