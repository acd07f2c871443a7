// What can be chosen about the kernel of a pair of CTAs, and what follows from the choice. Host and
// device. What a stage is along K, and the scale tiles: blackwell/stage.hpp.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/kernels/blackwell/stage.hpp"

namespace dualgemm::cuda::sm100a_pair {

using blackwell::kCtaRows;
using blackwell::kEpilogueCols;
using blackwell::kMmaK;
using blackwell::kMmaSteps;
using blackwell::kPairCtas;
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
  int tile_n;               // columns of D per pair: as many rows of Gate and of Up
  OutputType output;        // of D
  bool prepared = false;    // weights: packed_weights.hpp
  bool persistent = false;  // a pair does tile after tile
  bool grouped = false;     // of groups of experts: groups/
  bool operator==(const Config&) const = default;
};

inline constexpr int kTileM = kPairCtas * kCtaRows;  // of A and D
inline constexpr uint16_t kBothCtas = 0b11;          // as multicasts say

inline constexpr int kLoadWarp = 4;  // the first of kOtherWarps; the rest is the epilogue's
inline constexpr int kMmaWarp = 5;
inline constexpr int kFirstArrangeWarp = 6;  // persistent
inline constexpr int kEarlyStages = 1;       // whose prepared weights are asked for before A may be

// Persistent pairs do so many rows of tiles, 4 096 rows of D, column after column, before they go
// on to the next ones: A of a band, 15 MB at k = 7168, stays in L2, and weights pass once a band.
inline constexpr int kBandTiles = 16;

// Derived from a Config; every rule stands under what it limits. Bytes and columns are those of one
// CTA.
template <Config kCfg>
struct Budget {
  static constexpr int kTileN = kCfg.tile_n;
  static_assert(kCfg.prepared || kTileN == 64 || kTileN == 128,
                "unpacked weights: a 128-row scale tile is used whole or by halves");
  static_assert(kTileN % 16 == 0 && kTileN <= kScaleTileRows,
                "N of a pair's MMA is a multiple of 16; both accumulators must leave TMEM columns "
                "for scales");
  // Warp w reads TMEM lanes 32 * (w % 4) ..: groups of four warps divide the columns, so that each
  // scheduler has four warps to hide an activation's latencies in. With 18 warps a thread has 96
  // registers, with 14, which encode NVFP4, 128. Persistent, they work while the next tile is
  // multiplied, and the thread that issues its MMAs shall not queue behind many.
  static constexpr int kEpilogueGroups =
      kCfg.persistent ? 2 : (kCfg.output == OutputType::kE2M1 ? 3 : 4);
  static constexpr int kEpilogueWarps = 4 * kEpilogueGroups;
  // From kLoadWarp on. Persistent, they are a warpgroup, and two of them arrange the scales of
  // prepared weights: the epilogue has no time for the next tile's.
  static constexpr int kOtherWarps = kCfg.persistent ? 4 : 2;
  static constexpr int kArrangeWarps = kOtherWarps - 2;
  static constexpr bool kArrangesScales = kCfg.prepared || kCfg.grouped;
  static constexpr int kThreads = (kEpilogueWarps + kOtherWarps) * 32;
  // Registers of a thread, persistent: the epilogue keeps all its sums, 128 of them, so that TMEM
  // is free.
  static constexpr int kEpilogueRegisters = 200;
  static constexpr int kOtherRegisters = 104;
  static_assert(!kCfg.persistent ||
                    kEpilogueWarps * kEpilogueRegisters + kOtherWarps * kOtherRegisters <= 2048,
                "64 Ki in an SM");

  static DUALGEMM_HOST_DEVICE constexpr bool is_epilogue(uint32_t warp) {
    return warp < kLoadWarp || warp >= kLoadWarp + kOtherWarps;
  }
  // Numbers of its warps, 0 .. kEpilogueWarps - 1: four neighbours from a multiple of 4 on have one
  // of each quarter.
  static DUALGEMM_HOST_DEVICE constexpr uint32_t epilogue_index(uint32_t warp) {
    return warp < kLoadWarp ? warp : warp - kOtherWarps;
  }

  // Columns of a group; the last ones may have fewer, or none.
  static constexpr int kGroupCols = (kTileN + kEpilogueGroups * kEpilogueCols - 1) /
                                    (kEpilogueGroups * kEpilogueCols) * kEpilogueCols;

  static constexpr int kWeightRows = kTileN / kPairCtas;  // of Gate and of Up
  static_assert(kWeightRows % 8 == 0, "whole swizzle atoms");
  static constexpr int kOperandBytes = (kCtaRows + 2 * kWeightRows) * kRowBytes;
  // A scale tile has room for 128 rows. Where they are arranged here, one has Gate's and Up's if
  // both fit.
  static constexpr bool kScalesShareTile = kCfg.prepared && 2 * kTileN <= kScaleTileRows;
  static constexpr int kWeightScaleTiles = kScalesShareTile ? 1 : 2;  // of one MMA step
  static constexpr int kWeightScaleBytes = kWeightScaleTiles * kMmaSteps * kScaleTileBytes;
  // A group's rows begin anywhere in a scale tile.
  static constexpr int kScaleTilesOfA = kCfg.grouped ? 2 : 1;
  static constexpr int kScaleBytesOfA = kScaleTilesOfA * kMmaSteps * kScaleTileBytes;
  static constexpr int kScaleBytes = kScaleBytesOfA + kWeightScaleBytes;
  static constexpr int kStageBytes = kOperandBytes + kScaleBytes;
  static_assert(kStageBytes % kSwizzleAlignment == 0, "stages follow each other at swizzle atoms");

  static constexpr int kStages = (kSmemBytes - kSmemReserve) / kStageBytes;
  static_assert(kStages >= 2, "loads must overlap the MMAs");
  static_assert(kCfg.persistent || kStages <= kEpilogueWarps,
                "each stage's scales are arranged by a warp of its own");

  // The last stages, whose MMAs of Gate come before those of Up: A is then read twice, which costs
  // nothing from 112 columns on.
  static constexpr uint32_t kTailStages = kCfg.persistent ? 1 : kTileN >= 96 ? 4 : 2;
  static_assert(kTailStages <= kStages, "no stage of the tail is filled again before its end");
  // The first stages, likewise: meanwhile the epilogue reads the sums of Up of the tile before.
  static constexpr uint32_t kHeadStages = kCfg.persistent ? 1 : 0;

  static constexpr int kAccGateCol = 0;
  // At a multiple of 32, as all published kernels have accumulators, where there is room for that.
  static constexpr int kAccUpCol = kTileN == 112 ? kTileN : (kTileN + 31) / 32 * 32;
  static constexpr int kScaleCol = kAccUpCol + kTileN;
  // Scale columns of one MMA step: A, then Gate and Up.
  static constexpr int kStepCols = (1 + kWeightScaleTiles) * kScaleTileCols;
  static constexpr int kUpScaleCol = kScalesShareTile ? kScaleTileCols / 2 : kScaleTileCols;
  static constexpr int kStageCols = kMmaSteps * kStepCols;
  static_assert(kScaleCol + kStages * kStageCols <= kTmemCols,
                "every stage has scale columns of its own: they are written again only after the "
                "MMAs that read them are known to be complete");
};

}  // namespace dualgemm::cuda::sm100a_pair
