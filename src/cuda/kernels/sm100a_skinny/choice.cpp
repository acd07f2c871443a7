// Which problems the kernel takes, with which instance, and whether it should.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/blackwell/checks.hpp"
#include "cuda/kernels/blackwell/group_model.hpp"
#include "cuda/kernels/blackwell/group_operands.hpp"
#include "cuda/kernels/blackwell/stream_model.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/sm100a_skinny/launch.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::sm100a_skinny {
namespace {

using core::ceil_div;
using core::round_up;

constexpr int kGroupCols = 64;  // of a tile of groups

// Bytes of a stage that a column of D costs: a row of Gate and one of Up with their scales.
constexpr int64_t kColumnBytes = 2 * (kTileK / 2 + kTileK / 16);

// Of the epilogue, as ptxsim has it (docs/lab/sm100a_skinny.md): Gate's warps and Up's take a turn
// of rows each at a time.
double epilogue_us(int64_t m, int tile_m) {
  const int64_t at_a_time = 2 * (tile_m >= 64 ? 16 : 8);
  return 0.6 + 0.025 * static_cast<double>(std::min<int64_t>(round_up(m, at_a_time), tile_m));
}

blackwell::StreamedWork work_of(const Problem& problem, const Instance& instance) {
  const Config& config = instance.config;
  return {.ctas = ceil_div(problem.n, config.tile_n) * problem.l,  // or tiles
          .stages_per_cta = ceil_div(problem.k, kTileK),
          .stage_bytes = instance.stage_bytes,
          .weight_bytes = config.tile_n * kColumnBytes,
          .ring_stages = instance.stages,
          .mma_clocks = kMmaSteps * blackwell::mma_clocks(config.tile_m, 1),
          .epilogue_us = epilogue_us(problem.m, config.tile_m)};
}

// Bits that must not depend on m come from one instance.
bool is_for(const Config& config, const Problem& problem) {
  if (problem.grouping == Grouping::kNone) return config.tile_m >= problem.m;
  return !problem.batch_invariant || config.tile_m == kMaxRows;
}

// Weights come from HBM once, whatever the tile is; this is what is left to an SM.
const Instance& choose_for_groups(const Problem& problem) {
  const Instance* best = nullptr;
  double least = 0;
  for (const Instance& instance : group_instances()) {
    if (!is_for(instance.config, problem)) continue;
    const double us = blackwell::usual_group_tiles(problem, instance.config.tile_m) *
                      stage_us(work_of(problem, instance));
    if (best == nullptr || us < least) best = &instance, least = us;
  }
  return *best;
}

// Of those with tile_n columns that are for the problem, the fewest rows; null: there are none.
const Instance* fewest_rows(std::span<const Instance> list, const Problem& problem, int tile_n) {
  const Instance* fewest = nullptr;
  for (const Instance& instance : list) {
    const Config& config = instance.config;
    if (config.tile_n == tile_n && is_for(config, problem) &&
        (fewest == nullptr || config.tile_m < fewest->config.tile_m))
      fewest = &instance;
  }
  return fewest;
}

}  // namespace

std::span<const Instance> instances_for(const Problem& problem, bool prepared, bool persistent) {
  if (problem.grouping != Grouping::kNone || persistent) return group_instances();
  return prepared ? prepared_instances() : instances();
}

Status supports(const Problem& problem) {
  if (problem.grouping != Grouping::kNone) return blackwell::check_with_groups(problem);
  DUALGEMM_TRY(blackwell::check_without_groups(problem));
  if (problem.m > kMaxRows) {
    return Status::unsupported("m", std::to_string(problem.m),
                               fmt::format("must be at most {} for this kernel", kMaxRows));
  }
  constexpr int64_t kNarrowest = 32;
  int64_t tiles = ceil_div(problem.n, kNarrowest);
  if (!__builtin_mul_overflow(tiles, problem.l, &tiles) && tiles <= (int64_t{1} << 31) - 1)
    return {};
  return Status::unsupported("n, l", fmt::format("{}, {}", problem.n, problem.l),
                             "must be at most 2^31 - 1 tiles of 32 columns for this kernel");
}

const Instance* find_instance(const Problem& problem, int64_t tile_m, int64_t tile_n, bool prepared,
                              bool persistent) {
  for (const Instance& instance : instances_for(problem, prepared, persistent)) {
    const Config& config = instance.config;
    if (config.tile_m == tile_m && config.tile_n == tile_n && is_for(config, problem))
      return &instance;
  }
  return nullptr;
}

// With one row on 148 SMs: N = 4096 is bound by HBM with 64 CTAs as with 128; N = 3072 has 48 wide
// tiles, whose rings are not enough on their way, and so 96 narrow ones; of very many columns
// narrow tiles are only more CTAs one after another. From 33 rows on a ring of wide tiles has 7
// stages or fewer: narrow ones keep more on their way.
const Instance* fastest_tile(const Problem& problem, int num_sms, bool prepared) {
  const Instance* best = nullptr;
  double least = 0;
  for (const int tile_n : prepared ? std::array{32, 64} : std::array{64, 32}) {
    const Instance* const instance = fewest_rows(instances_for(problem, prepared), problem, tile_n);
    if (instance == nullptr) continue;
    const double us = modelled_us(problem, *instance, num_sms, prepared);
    if (best == nullptr || us < least) best = instance, least = us;
  }
  return best;
}

const Instance& persistent_instance(const Problem& problem) {
  return *fewest_rows(group_instances(), problem, kGroupCols);
}

const Instance& choose_instance(const Problem& problem, int num_sms, bool prepared) {
  if (problem.grouping != Grouping::kNone) return choose_for_groups(problem);
  const Instance* const tile = fastest_tile(problem, num_sms, prepared);
  const Instance& persistent = persistent_instance(problem);
  const auto us = [&](const Instance& instance) {
    return modelled_us(problem, instance, num_sms, prepared);
  };
  return tile == nullptr || us(persistent) < us(*tile) ? persistent : *tile;
}

double modelled_us(const Problem& problem, const Instance& instance, int num_sms, bool prepared) {
  const blackwell::StreamedWork work = work_of(problem, instance);
  const bool persistent = instance.config.grouped;
  return blackwell::copies_us(problem, prepared, persistent) +
         (persistent ? blackwell::modelled_persistent_us(work, num_sms)
                     : blackwell::modelled_us(work, num_sms));
}

double modelled_group_clocks(const Problem& problem, int num_sms) {
  const Instance& instance = choose_instance(problem, num_sms);
  const int tile_m = instance.config.tile_m;
  const int64_t at_once = std::max(num_sms, 1);
  const double bytes = instance.stage_bytes - kMmaSteps * kScaleTileBytes;
  const double turn =
      blackwell::kTurnUs * blackwell::kClocksPerUs / instance.stages;  // of the ring
  // Of the epilogue, by rows that a tile may be expected to have.
  const double rows = 30.0 * static_cast<double>(std::min<int64_t>(usual_rows(problem), tile_m));
  return blackwell::clocks_of_groups(
      problem,
      {.tiles_of_expert = blackwell::usual_group_tiles(problem, tile_m),
       .tile_n = instance.config.tile_n,
       .at_once = at_once,
       .stage = std::max({kMmaSteps * blackwell::mma_clocks(tile_m, 1), turn,
                          bytes / blackwell::kPortBytesPerClock,
                          bytes * static_cast<double>(at_once) / blackwell::kL2BytesPerClock}),
       .between = 650,
       .least = 960 + rows,
       .around = 10'400 + rows});
}

int64_t ctas_for(const Problem& problem, const Config& config, int64_t most) {
  const int64_t tiles_n = ceil_div(problem.n, config.tile_n);
  if (!config.grouped) return tiles_n * problem.l;
  // Without groups a tile has all rows of a batch.
  const bool grouped = problem.grouping != Grouping::kNone;
  return std::min((grouped ? most_group_tiles(problem, config.tile_m) : problem.l) * tiles_n, most);
}

}  // namespace dualgemm::cuda::sm100a_skinny
