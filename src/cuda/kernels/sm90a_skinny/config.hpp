// What can be chosen about the kernel for few rows of A, and what follows from the choice: bytes,
// stages, threads. Host and device.
#pragma once

#include <cstdint>

#include "cuda/device/a_type.hpp"
#include "cuda/device/activation.hpp"
#include "cuda/kernels/packed/packed_unit.hpp"

namespace dualgemm::cuda::sm90a_skinny {

struct Config {
  AType a_type;
  int units;      // of 8 columns of D per tile: 8 rows of Gate and 8 of Up are mma's 16
  bool prepared;  // weights as PackedUnit has them, else as NVFP4 has them
  int tile_m;     // rows of A at the most: mma's N, or with prepared weights twice that
  bool grouped;   // rows are groups of experts: tiles are those that these have
  bool many;      // CTAs have many tiles: warps may be a tile apart
  bool operator==(const Config&) const = default;
};

inline constexpr int kGroupRows = 8;              // rows of A: mma's N
inline constexpr int kTileK = 256;                // elements along k that a warp takes at a time
inline constexpr int kTileRowBytes = kTileK / 2;  // of codes of one row
inline constexpr int kChunkK = kUnitK;            // the same of prepared weights
inline constexpr int kWarps = 16;                 // each takes a 16th of k
inline constexpr int kTileScales = kTileK / 16;   // of one row, a byte each
// Units of each warp on their way. The SM takes about 70 KB of copies before a warp that asks for
// more has to wait, with data that it could work on: docs/kernels/sm90a_skinny.md, "The start".
inline constexpr int kUnitsAhead = 2;
inline constexpr int kScaleTileBytes = 512;    // swizzled scales: 128 rows x 4
inline constexpr int kStepK = 64;              // k is a multiple of it: a word of four scales
inline constexpr int kScaleAlignment = 4;      // of rows of scales: a copy's four bytes
inline constexpr int kCodeAlignment = 16;      // of rows of codes
inline constexpr int kSmemBytes = 227 * 1024;  // of one CTA
// With groups, tiles of rows that a CTA finds by itself, 16 KB of shared memory; and from how many
// experts, or rows that name theirs: twice round the threads.
inline constexpr int kOwnTiles = 1024;
inline constexpr int kOwnExperts = 1024;
// With groups and prepared weights, tiles of a CTA that are planned at a time: twice as many stand
// in 4 KB of shared memory.
inline constexpr int kPlanned = 16;

DUALGEMM_HOST_DEVICE constexpr int tile_n_of(const Config& config) {
  return config.units * kUnitCols;
}

// With groups, rows whose index of A a CTA keeps. More would cost 32 KB of L1, through which A is
// read, as shared memory comes in steps (of 132, 164, 196 KB).
DUALGEMM_HOST_DEVICE constexpr int kept_rows(const Config& config) {
  return config.prepared ? 1280 : 512;
}

// A tile has whole blocks of 16 columns.
DUALGEMM_HOST_DEVICE constexpr bool writes_nvfp4(const Config& config) {
  return config.units % 2 == 0;
}

// Warps that finish tiles plan the coming ones for those that multiply.
DUALGEMM_HOST_DEVICE constexpr bool plans_tiles(const Config& config) {
  return config.grouped && config.prepared;
}

// What is left for less than a tile a CTA may be dealt out in tiles of fewer units. Groups have
// more tiles, whatever the experts' rows.
DUALGEMM_HOST_DEVICE constexpr bool has_narrow_tiles(const Config& config) {
  return config.many && !config.grouped && config.units > 1;
}

// Rows of a that there are instances for; groups have any number, in tiles of at most so many.
DUALGEMM_HOST_DEVICE constexpr int most_rows(bool prepared) {
  return prepared ? 2 * kGroupRows : kGroupRows;
}

template <Config kCfg>
struct Budget {
  static constexpr int kGroups = kCfg.tile_m / kGroupRows;
  // Warps that multiply. 16 with the sums of 24 x 16 outputs would lack registers.
  static constexpr int kMultipliers = kGroups * kCfg.units >= 6 ? 12 : kWarps;
  // Warps that do nothing but add the others' sums and store outputs, one for each unit. Weights as
  // NVFP4 has them leave no registers for them.
  static constexpr int kFinishers = kCfg.prepared ? kCfg.units : 0;
  // Tiles whose sums there is room for: with many tiles a warp goes on to its next one when it has
  // left its sums, the others may be a tile behind.
  static constexpr int kTilesInFlight = kCfg.many ? 2 : 1;
  static constexpr int kThreads = 32 * (kMultipliers + kFinishers);
  // Chunks of a warp of prepared weights on their way: the same 74 KB of an SM, or less.
  static constexpr int kSlots = 8 / kCfg.units;
  // k-tiles of each warp that there is room for.
  static constexpr int kStages = (kUnitsAhead + kCfg.units - 1) / kCfg.units;
  static_assert(kCfg.units * 4 <= kWarps, "four warps finish a unit");
  static_assert(kCfg.prepared || !kCfg.many, "warps that only finish tiles");
  static_assert(kCfg.tile_m % kGroupRows == 0 && kCfg.tile_m <= most_rows(kCfg.prepared));
};

}  // namespace dualgemm::cuda::sm90a_skinny
