// What can be chosen about the sm_100a kernel for few rows of A, and what follows from the choice:
// bytes, stages, TMEM columns. Host and device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/kernels/blackwell/finished_tile.hpp"
#include "cuda/kernels/blackwell/stage.hpp"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::sm100a_skinny {

using blackwell::kMmaK;
using blackwell::kMmaSteps;
using blackwell::kRowBytes;
using blackwell::kRowScaleBytes;
using blackwell::kScaleTileBytes;
using blackwell::kScaleTileCols;
using blackwell::kScaleTileRows;
using blackwell::kSmemBytes;
using blackwell::kSmemReserve;
using blackwell::kSwizzleAlignment;
using blackwell::kTileK;
using blackwell::kTmemCols;

struct Config {
  int tile_m;  // rows of A and D, the MMA's N: all of a problem, or some of a group's
  int tile_n;  // columns of D per tile: as many rows of Gate and of Up, together the MMA's M
  bool grouped =
      false;  // tiles of groups of experts, or of many columns, several for a CTA; of any
              // weights
  bool prepared = false;  // weights: blackwell/packed_weights.hpp
  bool operator==(const Config&) const = default;
};

inline constexpr int kMmaM = 128;      // the only M of kind::mxf4nvf4 for one CTA
inline constexpr int kMaxRows = 128;   // of A
inline constexpr int kGroupRows = 32;  // of a scale tile that share a column of 32 bits

inline constexpr int kEpilogueWarps = 4;  // warp w reads TMEM lanes 32w .. 32w+31
inline constexpr int kLoadWarp = 4;
inline constexpr int kMmaWarp = 5;
// In kernels for groups: warps that only mix, as the epilogue's are still at the last tile.
inline constexpr int kFirstMixWarp = 6;
// With prepared weights: A's loads have a warp of their own, as they alone wait for the grid
// before.
inline constexpr int kLoadAWarp = 6;
static_assert(kMmaM == 32 * kEpilogueWarps, "each epilogue warp owns one quarter of the lanes");
static_assert(kScaleTileBytes == 32 * 16, "a lane mixes a row of 16 bytes");

DUALGEMM_HOST_DEVICE constexpr blackwell::FinishedTile finished_tile(const Config& config) {
  return {config.tile_m, config.tile_n};
}

// Derived from a Config; every rule stands under what it limits.
template <Config kCfg>
struct Budget {
  static constexpr int kThreads = 32 * (kCfg.grouped    ? kFirstMixWarp + kEpilogueWarps
                                        : kCfg.prepared ? kLoadAWarp + 1
                                                        : kMmaWarp + 1);
  static_assert(kCfg.tile_m % 8 == 0 && kCfg.tile_m >= 8 && kCfg.tile_m <= kMaxRows,
                "an N of kind::mxf4nvf4, with scales in one tile of A's");
  static_assert(kCfg.tile_n == 32 || kCfg.tile_n == 64,
                "the MMA's rows, that is lanes, 0 .. tile_n-1 are Gate's and those behind them "
                "Up's, in whole groups of scales");
  static constexpr int kGroups = kCfg.tile_n / kGroupRows;  // of scales, of each product
  using Turns = blackwell::TurnsOf<finished_tile(kCfg)>;
  static constexpr int kUsedRows = Turns::kUsedRows;

  static constexpr int kWeightBytes = kUsedRows * kRowBytes;
  static constexpr int kABytes = kCfg.tile_m * kRowBytes;
  static constexpr int kScaleBytes = kMmaSteps * kScaleTileBytes;  // of one operand
  // A group's rows begin anywhere in a scale tile.
  static constexpr int kScaleTilesOfA = kCfg.grouped ? 2 : 1;
  // Those of the MMA's rows are made in the first one's place; prepared scales arrive there.
  static constexpr int kScaleTilesOfWeights = kCfg.prepared ? 1 : 2;
  static constexpr int kStageBytes =
      kWeightBytes + kABytes + (kScaleTilesOfWeights + kScaleTilesOfA) * kScaleBytes;
  static_assert(kScaleBytes >= kMaxRows * kRowScaleBytes,
                "scales in rows have room in their place");
  static_assert(kStageBytes % kSwizzleAlignment == 0, "stages follow each other at swizzle atoms");
  static_assert(kMmaM * kRowBytes <= kStageBytes,
                "unused rows of the MMA are what lies behind the weights in their stage");

  static constexpr int kAccCol = 0;
  static constexpr int kAccs = kCfg.grouped ? Turns::kAccs : 1;  // accumulators
  static constexpr int kScaleCol = kAccs * kCfg.tile_m;
  static constexpr int kStepCols = 2 * kScaleTileCols;  // weights and A of one MMA step
  static constexpr int kStageCols = kMmaSteps * kStepCols;

  static constexpr int kExchangeBytes = kCfg.grouped ? Turns::kExchangeBytes : 0;

  // As many as shared memory takes, and TMEM: every stage has scale columns of its own, which are
  // written again only after the MMAs that read them are known to be complete.
  static constexpr int kStages =
      std::min((kSmemBytes - kSmemReserve - kExchangeBytes) / kStageBytes,
               (kTmemCols - kScaleCol) / kStageCols);
  static_assert(kStages >= kEpilogueWarps,
                "each of these warps mixes the scales of stages of its own");
  static_assert(kCfg.grouped || kCfg.tile_m * kCfg.tile_n * 4 <= kStages * kStageBytes,
                "gate and up meet in the stages' place");
};

}  // namespace dualgemm::cuda::sm100a_skinny
