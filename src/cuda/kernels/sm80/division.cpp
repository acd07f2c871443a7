#include "cuda/kernels/sm80/division.hpp"

#include <algorithm>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/common/group_tiles.hpp"

namespace dualgemm::cuda::sm80 {
namespace {

using core::ceil_div;

// CUDA C++ Programming Guide 13.0, "Compute Capabilities", table "Technical Specifications"; of an
// unknown GPU the least.
int64_t shared_bytes_of_sm(int compute_capability) {
  const bool large = compute_capability >= 90 && compute_capability < 120;
  const bool middle = compute_capability == 80 || compute_capability == 87;
  return (large ? 228 : middle ? 164 : 100) << 10;
}

// The sums of a tile over a part of k.
int64_t tile_bytes(const Config& config) {
  return warps_of(config) * items_of(config) * kItemBytes;
}
// Parts of tiles that CTAs with equal shares have at the most: a tile has one more than shares that
// end inside it.
int64_t shared_parts(int64_t tiles, int64_t ctas) {
  return tiles % ctas == 0 ? 0 : std::min(2 * (ctas - 1), ctas - 1 + tiles % ctas);
}

}  // namespace

int64_t ctas_of_sm(const Config& config, int compute_capability) {
  constexpr int64_t kOfSystem = 1 << 10;  // bytes of shared memory of each CTA
  const int64_t by_memory =
      shared_bytes_of_sm(compute_capability) / (smem_bytes_of(config) + kOfSystem);
  return std::min<int64_t>(min_ctas_of(config), by_memory);
}

int64_t tiles_of(const Problem& problem, const Config& config) {
  return ceil_div(problem.m, tile_m_of(config)) * ceil_div(problem.n, tile_n_of(config)) *
         problem.l;
}

int64_t most_tiles_of(const Problem& problem, const Config& config) {
  if (problem.grouping == Grouping::kNone) return tiles_of(problem, config);
  return most_group_tiles(problem, tile_m_of(config)) * ceil_div(problem.n, tile_n_of(config));
}

int64_t chunks_of(const Problem& problem) { return ceil_div(problem.k, kChunkK); }

bool can_divide_k(const Config& config, const Problem& problem) {
  return is_wide(config) && config.pass == Pass::kFused && problem.grouping == Grouping::kNone;
}

int64_t partial_bytes(const Problem& problem, const Config& config, const Division& division) {
  const int64_t tiles = tiles_of(problem, config);
  const int64_t slots = !has_shares(division)        ? division.splits * tiles
                        : tiles % division.ctas == 0 ? 0
                                                     : 2 * division.ctas;
  return slots * tile_bytes(config);
}

bool can_share(const Config& config, const Problem& problem) {
  int64_t chunks = 0;
  return can_divide_k(config, problem) && !problem.batch_invariant &&
         !__builtin_mul_overflow(tiles_of(problem, config), chunks_of(problem), &chunks) &&
         chunks <= INT32_MAX;
}

Division shares_of(const Config& config, const Problem& problem, int64_t most) {
  return {Division::kShares, std::min(most, tiles_of(problem, config) * chunks_of(problem))};
}

bool can_take_turns(const Config& config, const Problem& problem) {
  if (!is_wide(config)) return config.pass == Pass::kFused;
  return can_divide_k(config, problem) && !problem.batch_invariant;
}

Division turns_of(const Config& config, const Problem& problem, int64_t most) {
  return {1, std::min(most, most_tiles_of(problem, config))};
}

int64_t moved_partial_bytes(const Problem& problem, const Config& config,
                            const Division& division) {
  if (!is_divided(division)) return 0;
  if (has_shares(division)) {
    const int64_t parts = shared_parts(tiles_of(problem, config), division.ctas);
    const int64_t rows =
        std::min<int64_t>(core::round_up(problem.m, kGroupRows), tile_m_of(config));
    return 2 * parts * tile_bytes(config) * rows / tile_m_of(config);
  }
  const int64_t rows = core::round_up(problem.m, kGroupRows) * problem.l;
  const int64_t columns = 2 * core::round_up(problem.n, tile_n_of(config));
  return 2 * division.splits * rows * columns * static_cast<int64_t>(sizeof(float));
}

namespace {

// Tiles of 8 rows in turns, where an SM has three CTAs and there are more tiles than that. A GPU
// gives the tiles beyond a full turn to the SMs that end first, three to each: one row at N = 14336
// (448 tiles, 132 SMs) took 30.8 us for 25.8, at 17408 39.8 for 35.2, at 28672 87.9 for 81.9
// (H200). Where an SM has two, turns were slower: with 16 rows 1 % at 14336 and 8 % at 28672, with
// 8 and weights as they lie 1 and 17 %; on an RTX 5090, whose SMs have shared memory for two, by
// ptxsim's clock 78.1 us for 66.8 at (17408, 5120).
Division few_rows_division(const Config& config, const Problem& problem, const DeviceCaps& caps) {
  constexpr int64_t kCtasThatWin = 3;
  const int64_t ctas = ctas_of_sm(config, caps.compute_capability);
  if (is_wide(config) || config.groups != 1 || ctas < kCtasThatWin ||
      !can_take_turns(config, problem)) {
    return {};
  }
  const int64_t most = ctas * std::max(caps.num_sms, 1);
  const Division turns = turns_of(config, problem, most);
  return turns.ctas == most ? turns : Division{};
}

}  // namespace

// Waves of CTAs, each with chunks along k and the end of a tile: outputs, or sums for the launch
// that adds them, which costs that launch and what it reads. Shares have more parts of tiles, each
// of which begins with nothing under way. In us, fitted to an H200's times: 4 % apart
// as a rule, 16 at the worst. What is compared are their ratios, and the choice takes at most 3 %
// more than the best (docs/lab/sm80.md).
TimedDivision fastest_division(const Config& config, const Problem& problem,
                               const DeviceCaps& caps) {
  if (!can_divide_k(config, problem)) return {few_rows_division(config, problem, caps), 0};
  constexpr double kOutputs = 6.0, kSums = 5.5, kLaunch = 2.0, kBytes = 10.0e6;  // bytes a us
  constexpr double kShares = 6.0, kShareBytes = 2.1e6, kLeastGain = 0.985;
  // Twelve warps side by side have 1.5 times the columns of eight.
  constexpr double kOfRow = 0.00875, kOfNoRow = 0.34, kTwelveWarps = 1.39;
  const double chunk_us =
      (kOfNoRow + kOfRow * tile_m_of(config)) * (config.warps_n > 8 ? kTwelveWarps : 1);
  const int64_t tiles = tiles_of(problem, config), chunks = chunks_of(problem);
  const int64_t sms = std::max(caps.num_sms, 1);
  const auto waves_us = [&](int64_t splits) {
    const auto waves = static_cast<double>(ceil_div(tiles * splits, sms));
    const double of_chunks = chunk_us * static_cast<double>(ceil_div(chunks, splits));
    if (splits == 1) return waves * (of_chunks + kOutputs);
    return waves * (of_chunks + kSums) + kLaunch +
           static_cast<double>(partial_bytes(problem, config, {splits})) / kBytes;
  };
  const auto shares_us = [&](int64_t ctas) {
    const int64_t turns = tiles / ctas, share = ceil_div(tiles % ctas * chunks, ctas);
    return static_cast<double>(turns) * (chunk_us * static_cast<double>(chunks) + kOutputs) +
           static_cast<double>(share) * chunk_us + kShares +
           static_cast<double>(shared_parts(tiles, ctas) * tile_bytes(config)) / kShareBytes;
  };
  if (problem.batch_invariant) return {{kInvariantParts}, waves_us(kInvariantParts)};
  int64_t best = 1;
  for (const int64_t splits : kSplits) {
    if (splits <= chunks && partial_bytes(problem, config, {splits}) <= kMaxPartialBytes &&
        waves_us(splits) < waves_us(best))
      best = splits;
  }
  if (can_share(config, problem)) {
    const Division shares = shares_of(config, problem, sms);
    const double us = shares_us(shares.ctas);
    if (partial_bytes(problem, config, shares) <= kMaxPartialBytes &&
        us < kLeastGain * waves_us(best))
      return {shares, us};
  }
  const bool fills_a_turn = best == 1 && tiles >= sms;
  return {fills_a_turn ? turns_of(config, problem, sms) : Division{best}, waves_us(best)};
}

}  // namespace dualgemm::cuda::sm80
