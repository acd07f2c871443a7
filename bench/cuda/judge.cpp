#include "bench/cuda/judge.hpp"

#include <algorithm>
#include <cmath>

#include "bench/cuda/operands.hpp"
#include "core/half.hpp"
#include "reference/bound.hpp"

namespace dualgemm::bench {
namespace {

constexpr int kSampledTiles = 6;
constexpr int64_t kSampledRows = 3, kSampledCols = 20;
constexpr int64_t kTile = 64;

double tile_difference(const uint16_t* actual, const uint16_t* expected, int64_t rows, int64_t cols,
                       int64_t ld) {
  double difference = 0.0, size = 0.0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      const double x = core::decode_f16(actual[row * ld + col]);
      const double y = core::decode_f16(expected[row * ld + col]);
      difference += (x - y) * (x - y), size += y * y;
    }
  }
  const double share = std::sqrt(difference / size);
  return std::isnan(share) ? HUGE_VAL : share;
}

}  // namespace

double worst_share_of_bound(const Problem& problem, const Buffers& host, Isa isa) {
  double worst = 0.0;
  Random random;
  const int64_t rows = std::min(kSampledRows, problem.m), cols = std::min(kSampledCols, problem.n);
  for (int tile = 0; tile < kSampledTiles; ++tile) {
    // The first tile ends at the last row and column.
    const auto begin = [&](int64_t extent, int64_t size) {
      const auto places = static_cast<uint64_t>(extent - size + 1);
      return tile == 0 ? extent - size : static_cast<int64_t>(random() % places);
    };
    const int64_t row = begin(problem.m, rows), col = begin(problem.n, cols);
    const core::RowGroup group{0, 0, problem.m, 0, 0, 0};
    const auto check = reference::check_tile(core::resolve(problem), host, group, row, rows, col,
                                             cols, reference::accumulation_of(problem, isa));
    worst = std::max(worst, check.failed > 0 ? HUGE_VAL : check.worst_share);
  }
  return worst;
}

double worst_tile_difference(const uint16_t* actual, const uint16_t* expected, int64_t m,
                             int64_t n) {
  const int64_t tile_rows = (m + kTile - 1) / kTile, tile_cols = (n + kTile - 1) / kTile;
  double worst = 0.0;
#pragma omp parallel for reduction(max : worst) schedule(static)
  for (int64_t tile = 0; tile < tile_rows * tile_cols; ++tile) {
    const int64_t row = tile / tile_cols * kTile, col = tile % tile_cols * kTile;
    worst = std::max(worst, tile_difference(actual + row * n + col, expected + row * n + col,
                                            std::min(kTile, m - row), std::min(kTile, n - col), n));
  }
  return worst;
}

}  // namespace dualgemm::bench
