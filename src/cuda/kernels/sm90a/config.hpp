// What can be chosen about the sm_90a kernel, and what follows from the choice: bytes, stages,
// threads, registers. Host and device.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/kernels/sm90a/packed_unit.hpp"

namespace dualgemm::cuda::sm90a {

// Consumer warpgroups are numbered group + groups * phase.
struct Config {
  int tokens;     // rows of a per tile: the N of wgmma
  int groups;     // of 32 columns of d per tile; each has `phases` warpgroups of its own
  int phases;     // warpgroups that take turns with the blocks of k of a group
  bool bf16;      // the type that both operands are decoded to: bf16, else fp16
  bool prepared;  // weights as PackedUnit has them, else as NVFP4 has them
  bool operator==(const Config&) const = default;
};

inline constexpr int kGroupCols = 32;  // of d: 32 rows of gate and 32 of up are wgmma's 64
inline constexpr int kBlockK = 256;    // elements along k of a weight stage: 128 bytes of a row
inline constexpr int kSubK = 64;       // elements along k of 128 bytes of decoded a
inline constexpr int kSubs = kBlockK / kSubK;
inline constexpr int kMmaK = 16;
inline constexpr int kSteps = kSubK / kMmaK;  // MMAs of a sub-block
inline constexpr int kRowBytes = 128;         // of one row of a stage, one swizzle atom wide
inline constexpr int kSwizzleAlignment = 1024;
inline constexpr int kScaleRowBytes = kBlockK / 16;           // linear scales of a row
inline constexpr int kScaleBlockBytes = 512;                  // swizzled ones: 128 rows x 4 scales
inline constexpr int kScaleBlocks = kBlockK / 64;             // of a stage
inline constexpr int kSmemBytes = 227 * 1024;                 // of one CTA
inline constexpr int kSmemReserve = kSwizzleAlignment + 512;  // aligning by hand; barriers
inline constexpr int kWarpgroup = 128;                        // threads
inline constexpr int kWarpCols = 8;                           // of d: a warp's part of a group
inline constexpr int kMostPreparedBytes = 74 * 1024;          // of prepared weights in the ring
inline constexpr int kExchangeMost = 16;  // sums of a thread that phases hand over at a time

// Tokens that a warp's epilogue takes at a time, at most one for each lane.
constexpr int chunk_tokens(const Config& config) {
  const int most = config.tokens > 32 ? 32 : 16;
  return config.tokens < most ? config.tokens : most;
}

// Whether two CTAs can share a tile's k and each finish half of its tokens: Schedule, `paired`.
constexpr bool can_pair(const Config& config) {
  return config.tokens % (2 * chunk_tokens(config)) == 0;
}

// Derived from a Config; every rule stands under what it limits.
template <Config kCfg>
struct Budget {
  static constexpr int kCols = kCfg.groups * kGroupCols;  // of d
  static_assert(kCols <= 128, "swizzled scales of a tile lie in one block of 128 rows");
  static_assert(kSubK == kUnitK, "a sub-block is a chunk of prepared weights");
  static_assert(kCols <= kUnitMultiple * kUnitCols, "prepared weights of a tile are contiguous");
  static constexpr int kUnits = kCols / kUnitCols;
  static constexpr int kWarpgroups = kCfg.groups * kCfg.phases;
  static constexpr int kConsumers = kWarpgroups * kWarpgroup;
  static constexpr int kThreads = kConsumers + kWarpgroup;

  // The register file's 65536 are handed out evenly, in eights, at launch; the producers then give
  // theirs to the consumers.
  static constexpr int kProducerRegisters = 24;
  static constexpr int kLaunchRegisters = 65536 / kThreads / 8 * 8;
  static constexpr int kSpare = (kLaunchRegisters - kProducerRegisters) / kWarpgroups / 8 * 8;
  static constexpr int kConsumerRegisters =
      kLaunchRegisters + kSpare < 240 ? kLaunchRegisters + kSpare : 240;

  static constexpr int kCodeBytes = 2 * kCols * kRowBytes;
  // Room for either layout: rows of 16 scales, or four blocks of 128 rows each.
  static constexpr int kScaleBytes = 2 * kScaleBlocks * kScaleBlockBytes;
  static constexpr int kWeightBytes =
      kCfg.prepared ? kSubs * kUnits * kUnitBytes : kCodeBytes + kScaleBytes;
  static_assert(kWeightBytes % kSwizzleAlignment == 0, "stages follow each other at atoms");

  // Sub-blocks of a per stage: small tiles take a whole block at a time.
  static constexpr int kActSubs = kCfg.tokens <= 32 ? kSubs : kCfg.tokens <= 64 ? 2 : 1;
  static constexpr int kActStagesPerBlock = kSubs / kActSubs;
  static constexpr int kActBytes = kActSubs * kCfg.tokens * kRowBytes;

  static constexpr int kChunk = chunk_tokens(kCfg);
  static constexpr bool kCanPair = can_pair(kCfg);
  static constexpr int kChunkFloats = kChunk * kWarpCols / 2;  // of one warp: 16-bit outputs
  static constexpr int kSums = kCfg.tokens / 2;                // accumulators of a thread
  static constexpr int kExchange = kSums < kExchangeMost ? kSums : kExchangeMost;
  // Of a warp: first sums of the later phases, then a chunk.
  static constexpr int kExchangeFloats = (kCfg.phases - 1) * kExchange * 32;
  static constexpr int kScratchFloats =
      kExchangeFloats > kChunkFloats ? kExchangeFloats : kChunkFloats;
  static constexpr int kScratchBytes = kCfg.groups * 4 * kScratchFloats * 4;
  static constexpr int kStageRoom = kSmemBytes - kSmemReserve - kScratchBytes;

  // A stage must always be used by the same phase: a warpgroup that skipped a round of a barrier
  // could not tell the two rounds of one parity apart.
  static constexpr int whole(int stages, int unit) { return stages / unit * unit; }
  // Prepared weights come so quickly that a ring of more holds up the first stages, and a: t16 of
  // 12 stages 14.8 us, of 8 14.55 (H200, (4096, 7168), M = 16).
  static constexpr int kMostStages =
      kCfg.prepared ? kMostPreparedBytes / kWeightBytes : kStageRoom / kWeightBytes;
  static constexpr int at_most(int stages) { return stages < kMostStages ? stages : kMostStages; }
  static constexpr int kFitting =
      at_most(kStageRoom / (kWeightBytes + kActBytes * kActStagesPerBlock));
  // One phase with large stages of a does with two blocks of a, or with one: then weights get more.
  static constexpr bool kRingsAlike = kCfg.phases > 1 || kActSubs == kSubs;
  static constexpr int kActBlocks = kRingsAlike         ? whole(kFitting, kCfg.phases)
                                    : kCfg.tokens > 128 ? 1
                                                        : 2;
  static constexpr int kActStages = kActBlocks * kActStagesPerBlock;
  static constexpr int kWeightStages =
      kRingsAlike ? kActBlocks : at_most((kStageRoom - kActStages * kActBytes) / kWeightBytes);
  static_assert(kWeightStages >= 2 && kActStages >= 2, "loads must overlap the MMAs");
  static_assert(kWeightStages % kCfg.phases == 0 && kWeightStages >= 2 * kCfg.phases);
  static_assert(kActBlocks % kCfg.phases == 0, "blocks of a follow each other in the ring");
  static_assert(kActStages >= 2 * kCfg.phases * (kCfg.phases > 1 ? kActStagesPerBlock : 1),
                "a stage is released when the MMAs on the next one are under way");
  static_assert((2 * kWeightStages + 2 * kActStages) * 8 <= kSmemReserve - kSwizzleAlignment);
};

}  // namespace dualgemm::cuda::sm90a
