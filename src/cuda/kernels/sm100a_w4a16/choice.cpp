// Which problems the kernel takes, with which instance and split.
#include <fmt/format.h>

#include <algorithm>

#include "core/int_math.hpp"
#include "cuda/kernels/blackwell/checks.hpp"
#include "cuda/kernels/blackwell/group_operands.hpp"
#include "cuda/kernels/blackwell/stream_model.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/sm100a_w4a16/launch.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::sm100a_w4a16 {
namespace {

using core::ceil_div;

// For one stage: instructions that each scheduler issues for its two decoding warps (counted in the
// PTX, two codes a conversion and a multiplication; bf16: three more), at one a clock.
constexpr double kDecodeClocksF16 = 400, kDecodeClocksBf16 = 850;
// For one stage: MMAs of 128 rows, half as many clocks each as they have columns.
constexpr int kMmasOfStage = kTileK / kMmaK;
constexpr double mma_clocks(int tile_m) { return 0.5 * kMmasOfStage * tile_m; }

// That the sums of several CTAs meet: the cluster's barriers (0.19 each on B300) and reads of
// another CTA's shared memory (about 200 clocks).
constexpr double kMeetUs = 0.5;

// How much later persistent CTAs are done with a single tile: the epilogue has half of the warps,
// and takes what it exchanges in turns (0.1 to 0.5, by ptxsim's clock).
constexpr double kPersistentUs = 0.5;

// Every CTA has a tile of k. How many would be best depends on m, and then so would the bits.
int64_t most_split(const Problem& problem) {
  return problem.batch_invariant ? 1 : std::min<int64_t>(kMaxSplit, ceil_div(problem.k, kTileK));
}

Status check_groups_of(const Problem& problem) {
  DUALGEMM_TRY(check_groups(problem));
  int64_t tiles = most_listed_tiles(problem, kFewestGroupRows);
  if (!__builtin_mul_overflow(tiles, ceil_div(problem.n, kTileN), &tiles) && tiles <= kMaxCtas)
    return {};
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "experts must have at most 2^31 - 1 tiles of 32 x 64");
}

// Clocks of a stage on one SM: for decoding it or for multiplying it, the larger of the two.
double work_clocks(const Config& config) {
  return std::max(config.bf16 ? kDecodeClocksBf16 : kDecodeClocksF16, mma_clocks(config.tile_m));
}

// Weights come from HBM once, whatever the tile is; each tile decodes them again.
double usual_us(const Problem& problem, const Instance& instance) {
  const blackwell::StreamedWork work{.ctas = 1,
                                     .stages_per_cta = 1,
                                     .stage_bytes = instance.stage_bytes,
                                     .weight_bytes = 0,
                                     .ring_stages = instance.stages,
                                     .mma_clocks = work_clocks(instance.config)};
  return blackwell::usual_group_tiles(problem, instance.config.tile_m) * blackwell::stage_us(work);
}

const Instance& choose_for_groups(const Problem& problem) {
  // An instance of more rows has to be faster by this much, as it has fewer stages.
  constexpr double kWorth = 0.99;
  const Instance* best = nullptr;
  for (const Instance& instance : group_instances()) {
    if (is_for(instance.config, problem) &&
        (best == nullptr || usual_us(problem, instance) < kWorth * usual_us(problem, *best)))
      best = &instance;
  }
  return *best;
}

}  // namespace

Status supports(const Problem& problem) {
  if (problem.a.type == DataType::kE2M1) {
    return Status::unsupported("a.type", dualgemm::name_of(problem.a.type),
                               "this kernel takes f16 and bf16");
  }
  DUALGEMM_TRY(check_rows_type(problem));
  DUALGEMM_TRY(blackwell::check_rows_in_order(problem));
  DUALGEMM_TRY(check_extents(problem));
  const core::ResolvedProblem resolved = core::resolve(problem);
  DUALGEMM_TRY(check_strides("a", resolved.a));
  DUALGEMM_TRY(check_strides("gate", resolved.gate));
  DUALGEMM_TRY(check_strides("up", resolved.up));
  if (problem.grouping != Grouping::kNone) return check_groups_of(problem);
  int64_t ctas = ceil_div(problem.m, kMaxTileM) * ceil_div(problem.n, kTileN) * kMaxSplit;
  if (!__builtin_mul_overflow(ctas, problem.l, &ctas) && ctas <= kMaxCtas) return {};
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "must be at most 2^28 - 1 tiles of 64 x 64");
}

int64_t num_tiles(const Problem& problem, int tile_m) {
  return ceil_div(problem.m, tile_m) * ceil_div(problem.n, kTileN) * problem.l;
}

std::span<const Instance> instances_for(const Problem& problem, bool persistent) {
  return problem.grouping == Grouping::kNone && !persistent ? instances() : group_instances();
}

bool is_for(const Config& config, const Problem& problem) {
  if (config.bf16 != (problem.a.type == DataType::kBF16)) return false;
  if (problem.batch_invariant) return config.tile_m == kMaxTileM;
  return problem.grouping != Grouping::kNone ||
         config.tile_m >= std::min<int64_t>(problem.m, kMaxTileM);
}

const Instance* find_instance(const Problem& problem, int64_t tile_m, bool persistent) {
  for (const Instance& instance : instances_for(problem, persistent)) {
    if (instance.config.tile_m == tile_m && is_for(instance.config, problem)) return &instance;
  }
  return nullptr;
}

const Instance& fewest_rows(const Problem& problem, bool persistent) {
  const Instance* fewest = nullptr;
  for (const Instance& instance : instances_for(problem, persistent)) {
    if (is_for(instance.config, problem) &&
        (fewest == nullptr || instance.config.tile_m < fewest->config.tile_m))
      fewest = &instance;
  }
  return *fewest;
}

int largest_split(const Problem& problem, int tile_m, int64_t ctas) {
  const int64_t split = std::min(most_split(problem), ctas / num_tiles(problem, tile_m));
  return split < 2 ? static_cast<int>(split) : split < 4 ? 2 : split < kMaxSplit ? 4 : kMaxSplit;
}

double modelled_us(const Problem& problem, const Instance& instance, int split, int num_sms) {
  const Config& config = instance.config;
  const int64_t tiles_m = ceil_div(problem.m, config.tile_m);
  const blackwell::StreamedWork work{
      .ctas = num_tiles(problem, config.tile_m) * split,
      .stages_per_cta = ceil_div(ceil_div(problem.k, kTileK), split),
      .stage_bytes = instance.stage_bytes,
      // Codes and scales of both weights; other rows of A find them in L2.
      .weight_bytes = 2 * kTileN * (kTileK / 2 + kTileK / 16) / tiles_m,
      .ring_stages = instance.stages,
      .mma_clocks = work_clocks(config)};
  if (config.grouped) return blackwell::modelled_persistent_us(work, num_sms) + kPersistentUs;
  return blackwell::modelled_us(work, num_sms) + (split > 1 ? kMeetUs : 0);
}

// With one row on 148 SMs and K = 7168: N = 4096 has 64 tiles of D, whose decoders are not as fast
// as HBM, and 128 CTAs with a split of 2 are. Powers of two: clusters of other sizes are legal, but
// no known kernel uses them.
int choose_split(const Problem& problem, const Instance& instance, int num_sms) {
  int best = 1;
  if (instance.config.grouped) return best;
  double least = modelled_us(problem, instance, best, num_sms);
  for (const int split : {2, 4, kMaxSplit}) {
    if (split > most_split(problem)) break;
    const double us = modelled_us(problem, instance, split, num_sms);
    if (us < least) best = split, least = us;
  }
  return best;
}

const Instance& choose_instance(const Problem& problem, int num_sms, bool prepared) {
  if (problem.grouping != Grouping::kNone) return choose_for_groups(problem);
  const auto us = [&](const Instance& instance) {
    return blackwell::copies_us(problem, prepared, instance.config.grouped) +
           modelled_us(problem, instance, choose_split(problem, instance, num_sms), num_sms);
  };
  const Instance &one_tile = fewest_rows(problem, false), &persistent = fewest_rows(problem, true);
  return us(persistent) < us(one_tile) ? persistent : one_tile;
}

int64_t persistent_ctas(const Problem& problem, int tile_m, int64_t most) {
  const int64_t tiles = problem.grouping == Grouping::kNone
                            ? num_tiles(problem, tile_m)
                            : most_group_tiles(problem, tile_m) * ceil_div(problem.n, kTileN);
  return std::min(tiles, most);
}

}  // namespace dualgemm::cuda::sm100a_w4a16
