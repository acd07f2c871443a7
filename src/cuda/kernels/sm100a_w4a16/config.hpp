// What can be chosen about the sm_100a kernel for 16-bit A, and what follows from the choice:
// bytes, stages, TMEM columns. Host and device.
#pragma once

#include <cstdint>

#include "cuda/kernels/blackwell/finished_tile.hpp"
#include "cuda/kernels/blackwell/stage.hpp"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::sm100a_w4a16 {

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
  int tile_m;            // rows of A and D per tile, the MMA's N
  bool bf16;             // A; else fp16
  bool grouped = false;  // tiles of groups of experts, or of many columns, several for a CTA
  bool operator==(const Config&) const = default;
};

inline constexpr int kTileN = 64;   // columns of D per CTA
inline constexpr int kMmaM = 128;   // so many rows of Gate, and under them of Up
inline constexpr int kMmaK = 16;    // elements along K per MMA
inline constexpr int kMmaCols = 8;  // TMEM columns of the MMA's A
inline constexpr int kMaxTileM = 64;
inline constexpr int kFewestGroupRows = 32;  // rows of the smallest compiled tile
inline constexpr int kMaxSplit = 8;          // CTAs that share K: a cluster
static_assert(kMmaM == 2 * kTileN);

// A stage's K in parts: A's rows of 128 bytes; the weights by a scale tile (64 elements), and by
// decoder warpgroup.
inline constexpr int kRowsOfA = kTileK * 2 / kRowBytes;  // of 128 bytes, for one row of A
inline constexpr int kScaleSteps = kTileK / 64;
inline constexpr int kDecoders = 2;  // groups of four warps, each with its own part of every stage
inline constexpr int kDecodedK = kTileK / kDecoders;
inline constexpr int kDecoderSteps = kScaleSteps / kDecoders;

inline constexpr int kGroupWarps = 4;  // warp w reaches TMEM lanes 32 * (w % 4) .. + 31
inline constexpr int kWorkWarps = kDecoders * kGroupWarps;  // decode, and then store D
inline constexpr int kLoadWarp = kWorkWarps;
inline constexpr int kMmaWarp = kWorkWarps + 1;
inline constexpr int kLoadAWarp = kWorkWarps + 2;
static_assert(kMmaM == 32 * kGroupWarps, "a thread decodes a row");

// In kernels for groups decoders go on to the next tile: the epilogue has warps of its own, behind
// theirs.
inline constexpr int kFinishWarp = kWorkWarps + 2;  // the first of them

// TMEM: accumulators, then decoded weights, a ring of slots for each group of decoders.
inline constexpr int kSlotCols = kDecodedK / 2;
inline constexpr int kSlots = 3;

// How the epilogue of groups divides a tile of D: as that for NVFP4 does.
DUALGEMM_HOST_DEVICE constexpr blackwell::FinishedTile finished_tile(const Config& config) {
  return {config.tile_m, kTileN};
}

// Rows of D that a thread finishes at a time; without groups.
inline constexpr int kTurnRows = 8;

// Derived from a Config; every rule stands under what it limits.
template <Config kCfg>
struct Budget {
  static constexpr int kThreads = 32 * (kCfg.grouped ? kFinishWarp + kGroupWarps : kLoadAWarp + 1);
  static_assert(kCfg.tile_m % 16 == 0 && kCfg.tile_m >= 16 && kCfg.tile_m <= kMaxTileM,
                "an N of kind::f16 with M = 128 and A in tensor memory");
  static_assert(kCfg.tile_m % kTurnRows == 0);
  static constexpr int kWeightBytes = kMmaM * kRowBytes;
  static constexpr int kABytes = kCfg.tile_m * kRowsOfA * kRowBytes;
  static constexpr int kScaleBytes = kScaleSteps * kScaleTileBytes;  // of one weight
  static constexpr int kStageBytes = kWeightBytes + kABytes + 2 * kScaleBytes;
  static_assert(kStageBytes % kSwizzleAlignment == 0, "stages follow each other at swizzle atoms");
  static constexpr int kExchangeBytes =
      kCfg.grouped ? blackwell::TurnsOf<finished_tile(kCfg)>::kExchangeBytes : 0;
  static constexpr int kStages = (kSmemBytes - kSmemReserve - kExchangeBytes) / kStageBytes;
  static_assert(kCfg.grouped || 2 * kCfg.tile_m * kTileN * 4 <= kStages * kStageBytes,
                "sums of Gate and Up meet in the stages' place");

  static constexpr int kAccs = kCfg.grouped ? 2 : 1;  // accumulators: one is read, one written
  static constexpr int kSlotCol = kAccs * kMaxTileM;
  static_assert(kSlotCol + kDecoders * kSlots * kSlotCols <= kTmemCols);
};

}  // namespace dualgemm::cuda::sm100a_w4a16
