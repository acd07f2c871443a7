// What can be chosen about the sm_100a kernel, and what follows from the choice: bytes, stages,
// TMEM columns. Host and device.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"

namespace dualgemm::cuda::sm100a {

inline constexpr const char* kKernelName = "tcgen05";  // as plans say

struct Config {
  int tile_n;         // columns of D per CTA: as many rows of Gate and of Up
  OutputType output;  // of D
  bool operator==(const Config&) const = default;
};

inline constexpr int kTileM = 128;  // rows of D per CTA: the only M of kind::mxf4nvf4 for one CTA
inline constexpr int kTileK = 256;  // elements along K per stage: 128 bytes, one swizzle atom
inline constexpr int kMmaK = 64;    // elements along K per MMA
inline constexpr int kMmaSteps = kTileK / kMmaK;
inline constexpr int kRowBytes = kTileK / 2;  // of one row of a stage
inline constexpr int kScaleTileBytes = 512;   // 128 rows x 4 scales: K = 64
inline constexpr int kScaleTileRows = 128;    // rows that share a scale tile
inline constexpr int kScaleTileCols = 4;      // TMEM columns of a scale tile
inline constexpr int kSmemBytes =
    227 * 1024;  // of one CTA (cudaDevAttrMaxSharedMemoryPerBlockOptin)
inline constexpr int kSwizzleAlignment = 1024;                // of a 128-byte swizzle atom
inline constexpr int kSmemReserve = kSwizzleAlignment + 256;  // aligning by hand; barriers
inline constexpr int kTmemCols = 512;                         // of one SM

inline constexpr int kEpilogueWarps = 4;  // warp w reads TMEM lanes 32w .. 32w+31
inline constexpr int kLoadWarp = 4;
inline constexpr int kMmaWarp = 5;
static_assert(kTileM == 32 * kEpilogueWarps, "each epilogue warp owns one quarter of the lanes");

inline constexpr int kEpilogueCols = 16;  // of each accumulator that a thread holds at a time

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
