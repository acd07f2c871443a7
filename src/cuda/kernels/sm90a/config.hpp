// What can be chosen about the sm_90a kernel, and what follows from the choice: bytes, stages,
// threads, registers. Host and device.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/kernels/hopper/stage.hpp"
#include "cuda/kernels/packed/packed_unit.hpp"

namespace dualgemm::cuda::sm90a {

using hopper::kTileK;

// A consumer warpgroup is number n of n_warpgroups and number k of k_warpgroups; all of them are
// numbered n + n_warpgroups * k.
struct Config {
  int tile_m;        // rows of A per tile: the N of wgmma
  int n_warpgroups;  // along n: each has 32 columns of D
  int k_warpgroups;  // along k: they take turns with the k-tiles of the same columns
  bool bf16;         // the type that both operands are decoded to: bf16, else fp16
  bool prepared;     // weights as PackedUnit has them, else as NVFP4 has them
  bool grouped;      // rows are groups of experts: tiles are those of a table
  // Gate through all of k, then Up, each with sums of its own. A stage's two operands are then the
  // two halves of one of them, as for a plain product.
  bool sequential = false;
  bool operator==(const Config&) const = default;
};

inline constexpr int kWarpgroupCols = 32;  // of D: 32 rows of Gate and 32 of Up are wgmma's 64
inline constexpr int kSubK = 64;           // elements along k of 128 bytes of decoded A
inline constexpr int kSubs = kTileK / kSubK;
inline constexpr int kMmaK = 16;
inline constexpr int kSteps = kSubK / kMmaK;  // MMAs of a sub-tile
inline constexpr int kRowBytes = 128;         // of one row of a stage, one swizzle atom wide
inline constexpr int kSwizzleAlignment = 1024;
inline constexpr int kScaleRowBytes = kTileK / 16;  // linear scales of a row
inline constexpr int kScaleTileBytes = 512;         // swizzled ones: 128 rows x 4 scales
inline constexpr int kScaleTiles = kTileK / 64;     // of a stage
inline constexpr int kSmemBytes = 227 * 1024;       // of one CTA
inline constexpr int kSmemReserve =
    kSwizzleAlignment + 512;                          // aligning by hand; barriers, Schedule
inline constexpr int kScheduleBytes = 64;             // at the most
inline constexpr int kWarpgroup = 128;                // threads
inline constexpr int kWarpCols = 8;                   // of D: a warp's part of a group
inline constexpr int kMostPreparedBytes = 74 * 1024;  // of prepared weights in the ring
inline constexpr int kExchangeMost = 16;  // sums of a thread that are handed over along k at a time

// Columns of D of a tile.
constexpr int64_t tile_n_of(const Config& config) { return config.n_warpgroups * kWarpgroupCols; }

// Rows that a warp's epilogue takes at a time, at most one for each lane.
constexpr int chunk_rows(const Config& config) {
  const int most = config.tile_m > 32 ? 32 : 16;
  return config.tile_m < most ? config.tile_m : most;
}

// Whether D can have both products side by side, and a residual. Not where two warpgroups take
// turns with the k of 64 rows: at 96 registers that spilled 12 bytes, and k_warpgroups = 1 is
// there.
constexpr bool writes_side_by_side(const Config& config) {
  return config.tile_m != 64 || config.k_warpgroups == 1;
}

// Whether two CTAs can share a tile's k and each finish half of its rows: Schedule, `paired`.
constexpr bool can_pair(const Config& config) {
  return config.tile_m % (2 * chunk_rows(config)) == 0;
}

// Scale tiles of 128 rows in which `tile_n` neighbours lie that begin at a multiple of tile_n.
constexpr int scale_tile_rows_of(int64_t tile_n) { return 128 % tile_n == 0 ? 1 : 2; }

// Whether the kernel can find rows of A by index itself. Smaller tiles wait for their consumers'
// instructions, and copying some hundred rows costs little; larger ones have no registers for it.
constexpr bool can_gather(const Config& config) {
  return config.grouped && (config.tile_m == 64 || config.tile_m == 128);
}
inline constexpr uint32_t kGatherWarps = 2;

// Derived from a Config; every rule stands under what it limits.
template <Config kCfg>
struct Budget {
  static constexpr int kTileN = tile_n_of(kCfg);
  static_assert(!kCfg.sequential ||
                (kCfg.k_warpgroups == 1 && kCfg.tile_m <= 128 && !kCfg.prepared && !kCfg.grouped));
  static_assert(kSubK == kUnitK, "a sub-tile is a chunk of prepared weights");
  static_assert(kTileN <= kUnitMultiple * kUnitCols, "prepared weights of a tile are contiguous");
  static constexpr int kUnits = kTileN / kUnitCols;
  static constexpr int kWarpgroups = kCfg.n_warpgroups * kCfg.k_warpgroups;
  static constexpr int kConsumers = kWarpgroups * kWarpgroup;
  static constexpr int kThreads = kConsumers + kWarpgroup;

  // The register file's 65536 are handed out evenly, in eights, at launch; the producers then give
  // theirs to the consumers.
  static constexpr int kProducerRegisters = can_gather(kCfg) ? 32 : 24;
  static constexpr int kLaunchRegisters = 65536 / kThreads / 8 * 8;
  static constexpr int kSpare = (kLaunchRegisters - kProducerRegisters) / kWarpgroups / 8 * 8;
  static constexpr int kConsumerRegisters =
      kLaunchRegisters + kSpare < 240 ? kLaunchRegisters + kSpare : 240;

  static constexpr int kCodeBytes = 2 * kTileN * kRowBytes;
  // Scale tiles of 128 rows, one or two, in which a tile's rows lie.
  static constexpr int kScaleTileRows = scale_tile_rows_of(kTileN);
  static constexpr int kSwizzledBytes = kScaleTileRows * kScaleTiles * kScaleTileBytes;
  // Room for either layout: rows of 16 scales, or scale tiles, four along k.
  static_assert(kSwizzledBytes >= kTileN * kScaleRowBytes);
  static constexpr int kScaleBytes = 2 * kSwizzledBytes;
  static constexpr int kWeightBytes =
      kCfg.prepared ? kSubs * kUnits * kUnitBytes : kCodeBytes + kScaleBytes;
  static_assert(kWeightBytes % kSwizzleAlignment == 0, "stages follow each other at atoms");

  // Sub-tiles of a per stage: small tiles take a whole k-tile at a time.
  static constexpr int kActSubs = kCfg.tile_m <= 32 ? kSubs : kCfg.tile_m <= 64 ? 2 : 1;
  static constexpr int kActStagesPerTile = kSubs / kActSubs;
  static constexpr int kActBytes = kActSubs * kCfg.tile_m * kRowBytes;

  static constexpr int kChunk = chunk_rows(kCfg);
  static constexpr bool kCanPair = can_pair(kCfg);
  static constexpr bool kCanGather = can_gather(kCfg);
  static constexpr bool kSideBySide = writes_side_by_side(kCfg);
  static constexpr int kChunkFloats = kChunk * kWarpCols / 2;  // of one warp: 16-bit outputs
  static constexpr int kSums = kCfg.tile_m / 2;                // accumulators of a thread
  static constexpr int kExchange = kSums < kExchangeMost ? kSums : kExchangeMost;
  // Scratch of a warp: first sums of the later k-warpgroups, then a chunk (NVFP4: two of amaxes).
  static constexpr int kExchangeFloats = (kCfg.k_warpgroups - 1) * kExchange * 32;
  static constexpr int kScratchFloats =
      kExchangeFloats > kChunkFloats ? kExchangeFloats : kChunkFloats;
  static constexpr int kScratchBytes = kCfg.n_warpgroups * 4 * kScratchFloats * 4;
  static constexpr int kStageRoom = kSmemBytes - kSmemReserve - kScratchBytes;

  // A stage must always be used by the same k-warpgroup: one that skipped a round of a barrier
  // could not tell the two rounds of one parity apart.
  static constexpr int whole(int stages, int unit) { return stages / unit * unit; }
  // Prepared weights come so quickly that a ring of more holds up the first stages, and A: t16 of
  // 12 stages 14.8 us, of 8 14.55 (H200, (4096, 7168), M = 16).
  static constexpr int kMostStages =
      kCfg.prepared ? kMostPreparedBytes / kWeightBytes : kStageRoom / kWeightBytes;
  static constexpr int at_most(int stages) { return stages < kMostStages ? stages : kMostStages; }
  static constexpr int kFitting =
      at_most(kStageRoom / (kWeightBytes + kActBytes * kActStagesPerTile));
  // One k-warpgroup with large stages of A does with two k-tiles of A, or with one: then weights
  // get more.
  static constexpr bool kRingsAlike = kCfg.k_warpgroups > 1 || kActSubs == kSubs;
  static constexpr int kActTiles = kRingsAlike         ? whole(kFitting, kCfg.k_warpgroups)
                                   : kCfg.tile_m > 128 ? 1
                                                       : 2;
  static constexpr int kActStages = kActTiles * kActStagesPerTile;
  static constexpr int kWeightStages =
      kRingsAlike ? kActTiles : at_most((kStageRoom - kActStages * kActBytes) / kWeightBytes);
  static_assert(kWeightStages >= 2 && kActStages >= 2, "loads must overlap the MMAs");
  static_assert(kWeightStages % kCfg.k_warpgroups == 0 && kWeightStages >= 2 * kCfg.k_warpgroups);
  static_assert(kActTiles % kCfg.k_warpgroups == 0, "k-tiles of A follow each other in the ring");
  static_assert(kActStages >=
                    2 * kCfg.k_warpgroups * (kCfg.k_warpgroups > 1 ? kActStagesPerTile : 1),
                "a stage is released when the MMAs on the next one are under way");
  static_assert((2 * kWeightStages + (kCanGather ? 3 : 2) * kActStages) * 8 + kScheduleBytes <=
                kSmemReserve - kSwizzleAlignment);
};

}  // namespace dualgemm::cuda::sm90a
