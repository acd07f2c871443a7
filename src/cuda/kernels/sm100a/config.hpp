// What can be chosen about the sm_100a kernel, and what follows from the choice: bytes, stages,
// TMEM columns. Host and device.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/kernels/blackwell/stage.hpp"

namespace dualgemm::cuda::sm100a {

using blackwell::kEpilogueCols;
using blackwell::kMmaK;
using blackwell::kMmaSteps;
using blackwell::kRowBytes;
using blackwell::kScaleTileBytes;
using blackwell::kScaleTileCols;
using blackwell::kScaleTileRows;
using blackwell::kSmemBytes;
using blackwell::kSmemReserve;
using blackwell::kSwizzleAlignment;
using blackwell::kTileK;
using blackwell::kTmemCols;

struct Config {
  int tile_n;         // columns of D per CTA: as many rows of Gate and of Up
  OutputType output;  // of D
  bool operator==(const Config&) const = default;
};

// Rows of D per CTA: the only M of kind::mxf4nvf4 for one CTA
inline constexpr int kTileM = blackwell::kCtaRows;

inline constexpr int kEpilogueWarps = 4;  // warp w reads TMEM lanes 32w .. 32w+31
inline constexpr int kLoadWarp = 4;
inline constexpr int kMmaWarp = 5;
static_assert(kTileM == 32 * kEpilogueWarps, "each epilogue warp owns one quarter of the lanes");

// Derived from a Config; every rule stands under what it limits.
template <Config kCfg>
struct Budget {
  static constexpr int kTileN = kCfg.tile_n;
  static constexpr int kThreads = 32 * (kMmaWarp + 1);
  static_assert(kTileN == 64 || kTileN == 128,
                "64 or 128: a 128-row scale tile is used whole or by halves, and both "
                "accumulators must leave TMEM columns for scales");
  static_assert(kTileN % kEpilogueCols == 0, "the epilogue takes whole chunks of columns");

  static constexpr int kOperandBytes = (kTileM + 2 * kTileN) * kRowBytes;
  static constexpr int kScaleBytes = 3 * kMmaSteps * kScaleTileBytes;
  static constexpr int kStageBytes = kOperandBytes + kScaleBytes;
  static_assert(kStageBytes % kSwizzleAlignment == 0, "stages follow each other at swizzle atoms");

  static constexpr int kStages = (kSmemBytes - kSmemReserve) / kStageBytes;
  static_assert(kStages >= 2, "loads must overlap the MMAs");

  static constexpr int kAccGateCol = 0;
  static constexpr int kAccUpCol = kTileN;
  static constexpr int kScaleCol = 2 * kTileN;
  static constexpr int kStepCols = 3 * kScaleTileCols;  // A, Gate, Up of one MMA step
  static constexpr int kStageCols = kMmaSteps * kStepCols;
  static_assert(kScaleCol + kStages * kStageCols <= kTmemCols,
                "every stage has scale columns of its own: they are written again only after the "
                "MMAs that read them are known to be complete");
};

}  // namespace dualgemm::cuda::sm100a
