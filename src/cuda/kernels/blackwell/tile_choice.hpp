// Sizes that follow from a problem's extents, and the choice between one CTA and a pair per tile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/int_math.hpp"
#include "cuda/kernels/blackwell/extents.hpp"
#include "cuda/kernels/blackwell/rates.hpp"
#include "cuda/kernels/blackwell/stage.hpp"

namespace dualgemm::cuda::blackwell {

constexpr int64_t num_pairs(int64_t m, int64_t n, int64_t l, int64_t tile_n) {
  return ceil_div(m, kPairCtas * kCtaRows) * ceil_div(n, tile_n) * l;
}

// A tile of 128 * ctas rows and tile_n columns, of one CTA or of a pair, persistent or not.
struct TileChoice {
  int ctas, tile_n;
  bool persistent = false;
  bool operator==(const TileChoice&) const = default;
};

// Clocks of the SM that a stage takes when `busy_sms` SMs work: the longest of three. The rates are
// those of docs/kernels/sm100a_pair.md: others have measured or fitted them on B200; these kernels
// have not been measured.
// `weight_scale_bytes`: of a stage, into one SM.
constexpr double stage_clocks(const TileChoice& tile, int64_t busy_sms,
                              int weight_scale_bytes = 2 * kMmaSteps * kScaleTileBytes) {
  constexpr double kReadA = kMmaReadBytes / kSharedBytesPerClock;   // clocks of an MMA
  const double read_b_per_column = tile.ctas == 1 ? 0.25 : 0.1875;  // a CTA's own half, and more
  const double columns = tile.tile_n;
  // Gate and Up: 2 * tile_n columns at two a clock, or A once and B twice from shared memory.
  const double tensor_core =
      kMmaSteps * std::max(columns, kReadA + 2 * read_b_per_column * columns);
  const double bytes = (kCtaRows + 2 * columns / tile.ctas) * kRowBytes +
                       kMmaSteps * kScaleTileBytes + weight_scale_bytes;
  return std::max({tensor_core, bytes / kPortBytesPerClock,
                   bytes * static_cast<double>(busy_sms) / kL2BytesPerClock});
}

// Clocks of all waves of tiles, `at_once` of them in each. Each wave begins and ends by itself:
// barriers, first bytes, the epilogue.
constexpr double clocks_of(const TileChoice& tile, int64_t m, int64_t n, int64_t k, int64_t l,
                           int64_t at_once) {
  constexpr double kClocksPerWave = 4800;  // 3 us at 1.6 GHz
  const int64_t tiles = ceil_div(m, int64_t{kCtaRows} * tile.ctas) * ceil_div(n, tile.tile_n) * l;
  const int64_t busy = std::min(tiles, at_once) * tile.ctas;
  return static_cast<double>(ceil_div(tiles, at_once)) *
         (static_cast<double>(ceil_div(k, kTileK)) * stage_clocks(tile, busy) + kClocksPerWave);
}

inline constexpr int kNarrowestTile = 48;        // columns of D of a pair, of what is compiled
inline constexpr int kPersistentTile = 128;      // the same of persistent pairs
inline constexpr double kClocksBetween = 850;    // of a tile and the next: the tensor core waits
inline constexpr double kClocksEpilogue = 2900;  // of a tile

// Clocks of persistent pairs: loads go on from tile to tile, and an epilogue is hidden by the next
// tile's main loop, if that is not shorter. The numbers are ptxsim's (docs/lab/sm100a_pair.md).
constexpr double clocks_of_persistent(int64_t m, int64_t n, int64_t k, int64_t l, int64_t at_once,
                                      int weight_scale_bytes = 2 * kMmaSteps * kScaleTileBytes) {
  constexpr double kClocksAround = 6500;  // as clocks_of()'s, with an epilogue of half the warps
  const int64_t tiles = num_pairs(m, n, l, kPersistentTile);
  const double stage = stage_clocks({kPairCtas, kPersistentTile},
                                    std::min(tiles, at_once) * kPairCtas, weight_scale_bytes);
  const double tile =
      std::max(static_cast<double>(ceil_div(k, kTileK)) * stage + kClocksBetween, kClocksEpilogue);
  return static_cast<double>(ceil_div(tiles, at_once)) * tile + kClocksAround;
}

// How many pairs a GPU runs at once: what it says, or as many as it has pairs of SMs (-1).
constexpr int pairs_at_once(int num_sms, int max_pairs) {
  return max_pairs < 0 ? num_sms / kPairCtas : max_pairs;
}

// The grid of persistent pairs, `most_ctas` at the most, of which a GPU has as many at once: two
// CTAs or more.
constexpr int64_t persistent_ctas(int64_t m, int64_t n, int64_t l, int64_t most_ctas) {
  const int64_t pairs = std::max(most_ctas / kPairCtas, int64_t{1});
  return std::min(num_pairs(m, n, l, kPersistentTile), pairs) * kPairCtas;
}

// Scales of a stage of the weights, into one SM.
constexpr int weight_scale_bytes_of(int tile_n, bool prepared) {
  return prepared ? 2 * tile_n * (kTileK / 16) : 2 * kMmaSteps * kScaleTileBytes;
}

// Clocks of up to kCtaRows rows: weights come from HBM once, which takes most of the time. What
// stands around a wave's main loop, epilogue included, is what ptxsim says of these kernels
// (docs/lab/sm100a_pair.md, few rows).
constexpr double clocks_of_few_rows(const TileChoice& tile, int64_t n, int64_t k, int64_t l,
                                    int num_sms, int max_pairs, bool prepared) {
  constexpr int kColumnBytes = 2 * (kRowBytes + kTileK / 16);  // of a stage
  constexpr double kAroundPersistent = 7000;
  const int64_t at_once =
      std::max(tile.ctas == kPairCtas ? pairs_at_once(num_sms, max_pairs) : num_sms, 1);
  const int64_t tiles = ceil_div(n, tile.tile_n) * l;
  const auto waves = static_cast<double>(ceil_div(tiles, at_once));
  const auto stages = static_cast<double>(ceil_div(k, kTileK));
  const double columns = tile.tile_n;
  const double hbm =
      static_cast<double>(tiles) * stages * columns * kColumnBytes / kHbmBytesPerClock;
  const double loop = stages * stage_clocks(tile, std::min(tiles, at_once) * tile.ctas,
                                            weight_scale_bytes_of(tile.tile_n, prepared));
  if (tile.persistent)
    return kAroundPersistent +
           std::max(waves * std::max(loop + kClocksBetween, kClocksEpilogue), hbm);
  const double around = tile.ctas == kPairCtas ? 4700 + 12.5 * columns : 5820 + 24 * columns;
  return waves * around + std::max(waves * loop, hbm);
}

// What a tile takes, in microseconds; kNoTile: there is none.
struct TimedTile {
  TileChoice tile;
  double us;
};
inline constexpr double kNoTile = std::numeric_limits<double>::infinity();

// Clocks of a pair's tiles of prepared weights, of more rows than that. Their scales come as they
// are, 16 bytes for a row's K = 256, and an epilogue takes the longer the more columns there are.
constexpr double clocks_of_prepared(int tile_n, int64_t m, int64_t n, int64_t k, int64_t l,
                                    int64_t at_once) {
  constexpr double kClocksPerWave = 4800;  // as above, with 64 columns
  constexpr double kClocksPerColumn = 12;  // 0.5 us for 64 more
  const int64_t pairs = num_pairs(m, n, l, tile_n);
  const double stage = stage_clocks({kPairCtas, tile_n}, std::min(pairs, at_once) * kPairCtas,
                                    weight_scale_bytes_of(tile_n, true));
  return static_cast<double>(ceil_div(pairs, at_once)) *
         (static_cast<double>(ceil_div(k, kTileK)) * stage + kClocksPerWave +
          kClocksPerColumn * (tile_n - 64));
}

// The tile of a pair per tile that takes the least on a GPU of `num_sms` SMs; between equals the
// narrower. Two of them are compiled for unpacked weights.
constexpr TimedTile fastest_pair(int64_t m, int64_t n, int64_t k, int64_t l, int num_sms,
                                 int max_pairs, bool prepared) {
  const int64_t pairs_there = pairs_at_once(num_sms, max_pairs);
  const int64_t at_once = std::max(pairs_there, int64_t{1});
  if (!prepared && pairs_there < 1) return {{kPairCtas, 64}, kNoTile};
  const auto clocks = [&](int tile_n) {
    const TileChoice tile{kPairCtas, tile_n};
    if (m <= kCtaRows) return clocks_of_few_rows(tile, n, k, l, num_sms, max_pairs, prepared);
    return prepared ? clocks_of_prepared(tile_n, m, n, k, l, at_once)
                    : clocks_of(tile, m, n, k, l, at_once);
  };
  int best = prepared ? kNarrowestTile : 64;
  for (const int tile_n : {64, 80, 96, 112, 128}) {
    const bool compiled = prepared || tile_n == 64 || tile_n == 128;
    if (compiled && clocks(tile_n) < clocks(best)) best = tile_n;
  }
  return {{kPairCtas, best}, clocks(best) / kClocksPerUs};
}

// The same of persistent pairs, of which one tile is compiled.
constexpr TimedTile persistent_pair(int64_t m, int64_t n, int64_t k, int64_t l, int num_sms,
                                    int max_pairs, bool prepared) {
  const TileChoice tile{kPairCtas, kPersistentTile, true};
  const int64_t pairs_there = pairs_at_once(num_sms, max_pairs);
  if (m <= kCtaRows && (prepared || pairs_there >= 1))
    return {tile, clocks_of_few_rows(tile, n, k, l, num_sms, max_pairs, prepared) / kClocksPerUs};
  if (pairs_there < 1) return {tile, kNoTile};
  const double clocks = clocks_of_persistent(m, n, k, l, pairs_there,
                                             weight_scale_bytes_of(kPersistentTile, prepared));
  return {tile, clocks / kClocksPerUs};
}

// What tiles of one CTA take: of up to kCtaRows rows those of choose_tile_n(), else the faster of
// the two.
constexpr double us_of_one_cta(int64_t m, int64_t n, int64_t k, int64_t l, int num_sms) {
  if (m <= kCtaRows) {
    const TileChoice tile{1, choose_tile_n(1, n, l, num_sms)};
    return clocks_of_few_rows(tile, n, k, l, num_sms, 0, false) / kClocksPerUs;
  }
  const int64_t at_once = std::max(num_sms, 1);
  return std::min(clocks_of({1, 64}, m, n, k, l, at_once),
                  clocks_of({1, 128}, m, n, k, l, at_once)) /
         kClocksPerUs;
}

}  // namespace dualgemm::cuda::blackwell
