// Whether groups of experts are for pairs of CTAs.
#include <algorithm>
#include <cmath>

#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/sm100a_pair/extents.hpp"
#include "cuda/kernels/sm100a_pair_groups/launch.hpp"
#include "cuda/kernels/sm100a_skinny/launch.hpp"
#include "cuda/kernels/sm100a_skinny/model.hpp"

namespace dualgemm::cuda::sm100a_pair_groups {
namespace {

using core::ceil_div;

// Persistent CTAs or pairs, so many at once, do a tile after the other, while HBM delivers everything
// once. In clocks; what stands between tiles and around them all is ptxsim's.
struct PersistentWork {
  double tiles_of_expert;  // of rows, as many as are to be expected
  int tile_n;
  int64_t at_once;
  double stage, between, least, around;
};

double clocks_of(const Problem& problem, const PersistentWork& work) {
  constexpr double kHbmBytes = 3750;  // a clock: 6.0 TB/s
  constexpr int kRowBytesOfStage = kRowBytes + kRowScaleBytes;
  const bool masked = problem.grouping == Grouping::kMasked;
  const int64_t experts = masked ? problem.l : std::min(problem.m, problem.l);  // with rows
  const int64_t rows_of_a = masked ? problem.m * problem.l : problem.m;
  const auto stages = static_cast<double>(ceil_div(problem.k, kTileK));
  const double rows = 2 * static_cast<double>(experts) * static_cast<double>(problem.n) +
                      static_cast<double>(rows_of_a);
  const double hbm = rows * stages * kRowBytesOfStage / kHbmBytes;
  const double tiles =
      static_cast<double>(experts * ceil_div(problem.n, work.tile_n)) * work.tiles_of_expert;
  const double turns = std::ceil(tiles / static_cast<double>(work.at_once));
  const double tile = std::max(stages * work.stage + work.between, work.least);
  return work.around + std::max(turns * tile, hbm);
}

PersistentWork work_of_pairs(const Problem& problem, int64_t pairs) {
  const int64_t at_once = std::max(pairs, int64_t{1});
  return {.tiles_of_expert = sm100a_skinny::usual_group_tiles(problem, kTileM),
          .tile_n = kTileN,
          .at_once = at_once,
          .stage = sm100a_pair::stage_clocks({kPairCtas, kTileN, true}, at_once * kPairCtas),
          .between = sm100a_pair::kClocksBetween,
          .least = sm100a_pair::kClocksEpilogue,
          .around = 13'400};
}

PersistentWork work_of_few_rows(const Problem& problem, int num_sms) {
  constexpr double kPortBytes = 112, kL2Bytes = 12'600;  // as sm100a_pair::stage_clocks()
  const sm100a_skinny::Instance& instance = sm100a_skinny::choose_instance(problem, num_sms);
  const int tile_m = instance.config.tile_m;
  const int64_t at_once = std::max(num_sms, 1);
  const double bytes = instance.stage_bytes - kMmaSteps * sm100a_pair::kScaleTileBytes;
  const double turn = 2400.0 / instance.stages;  // of the ring: 1.5 us
  // Clocks of the epilogue, by the rows that a tile may be expected to have.
  const double rows = 30.0 * static_cast<double>(std::min<int64_t>(usual_rows(problem), tile_m));
  return {.tiles_of_expert = sm100a_skinny::usual_group_tiles(problem, tile_m),
          .tile_n = instance.config.tile_n,
          .at_once = at_once,
          .stage = std::max({kMmaSteps * sm100a_skinny::mma_clocks(tile_m, 1), turn,
                             bytes / kPortBytes, bytes * static_cast<double>(at_once) / kL2Bytes}),
          .between = 650,
          .least = 960 + rows,
          .around = 10'400 + rows};
}

}  // namespace

bool are_sooner(const Problem& problem, int num_sms, int64_t pairs) {
  return clocks_of(problem, work_of_pairs(problem, pairs)) <
         clocks_of(problem, work_of_few_rows(problem, num_sms));
}

}  // namespace dualgemm::cuda::sm100a_pair_groups
