// How long groups of experts should take, from bytes and tiles; what stands between tiles and
// around them all is ptxsim's (docs/lab/sm100a_pair.md). A means to rank kernels, not a promise.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/int_math.hpp"
#include "cuda/kernels/blackwell/rates.hpp"
#include "cuda/kernels/blackwell/stage.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::cuda::blackwell {

// Persistent CTAs or pairs, so many at once, do a tile after the other, while HBM delivers
// everything once. In clocks.
struct GroupWork {
  double tiles_of_expert;  // of rows, as many as are to be expected
  int tile_n;
  int64_t at_once;
  double stage, between, least, around;
};

inline double clocks_of_groups(const Problem& problem, const GroupWork& work) {
  constexpr int kRowBytesOfStage = kRowBytes + kRowScaleBytes;
  const bool masked = problem.grouping == Grouping::kMasked;
  const int64_t experts = masked ? problem.l : std::min(problem.m, problem.l);  // with rows
  const int64_t rows_of_a = masked ? problem.m * problem.l : problem.m;
  const auto stages = static_cast<double>(core::ceil_div(problem.k, kTileK));
  const double rows = 2 * static_cast<double>(experts) * static_cast<double>(problem.n) +
                      static_cast<double>(rows_of_a);
  const double hbm = rows * stages * kRowBytesOfStage / kHbmBytesPerClock;
  const double tiles =
      static_cast<double>(experts * core::ceil_div(problem.n, work.tile_n)) * work.tiles_of_expert;
  const double turns = std::ceil(tiles / static_cast<double>(work.at_once));
  const double tile = std::max(stages * work.stage + work.between, work.least);
  return work.around + std::max(turns * tile, hbm);
}

}  // namespace dualgemm::cuda::blackwell
