// What can be chosen about the sm_120a kernel, and what follows from the choice. Host and device.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"

namespace dualgemm::cuda::sm120a {

struct Config {
  int groups;   // of 8 rows of A, of a warp
  int warps_m;  // warps that divide the rows of a tile
  bool operator==(const Config&) const = default;
};

inline constexpr int kMmaRows = 16;  // of weights: 8 of Gate and the same 8 of Up, a unit
inline constexpr int kUnitCols = kMmaRows / 2;
inline constexpr int kGroupRows = 8;  // rows of A per mma: its N
inline constexpr int kMmaK = 64;
inline constexpr int kWarpUnits = 2;  // a block of 16 columns: what NVFP4 output needs in a warp
inline constexpr int kWarpsN = 4;     // warps that divide the columns of a tile
inline constexpr int kWarpCols = kWarpUnits * kUnitCols;
inline constexpr int kTileN = kWarpsN * kWarpCols;
inline constexpr int kWeightRows = 2 * kTileN;  // of a tile: of Gate and of Up
inline constexpr int kStageK = 128;             // elements along k of a stage
inline constexpr int kSteps = kStageK / kMmaK;  // MMAs along it
inline constexpr int kStageK16 = kStageK / 16;  // the same in scales
inline constexpr int kRowBytes = kStageK / 2;   // of codes in a stage
inline constexpr int kPieceBytes = 16;          // what is copied at a time
inline constexpr int kPieces = kRowBytes / kPieceBytes;
inline constexpr int kScaleBytes = kStageK16;  // of a row in a stage

DUALGEMM_HOST_DEVICE constexpr int tile_m_of(const Config& config) {
  return config.warps_m * config.groups * kGroupRows;
}
DUALGEMM_HOST_DEVICE constexpr int threads_of(const Config& config) {
  return 32 * kWarpsN * config.warps_m;
}
// CTAs that an SM's 65536 registers are to hold, the second number of __launch_bounds__: three of
// 128 threads, with 168 registers each; else one, which has the whole ring.
DUALGEMM_HOST_DEVICE constexpr int min_ctas_of(const Config& config) {
  return config.warps_m == 1 ? 3 : 1;
}

// A stage: rows of weights, then rows of A, as codes and after them as scales.
DUALGEMM_HOST_DEVICE constexpr int rows_of(const Config& config) {
  return kWeightRows + tile_m_of(config);
}
DUALGEMM_HOST_DEVICE constexpr int stage_bytes_of(const Config& config) {
  return rows_of(config) * (kRowBytes + kScaleBytes);
}

// Groups of a warp whose sums are finished together, in the memory of the stages: finish_rows.cuh.
inline constexpr int kSumStride = 36;
inline constexpr int kItemFloats = 8 * kSumStride;  // of a group
DUALGEMM_HOST_DEVICE constexpr int round_groups_of(const Config& config) {
  return config.groups < 4 ? config.groups : 4;
}
// What a warp's take, in whole rows of 32 banks, room for a shift by up to 10 among them.
DUALGEMM_HOST_DEVICE constexpr int warp_floats_of(const Config& config) {
  return (round_groups_of(config) * kItemFloats + 10 + 31) / 32 * 32;
}
DUALGEMM_HOST_DEVICE constexpr int sums_bytes_of(const Config& config) {
  return kWarpsN * config.warps_m * warp_floats_of(config) * 4;
}

// In front of the ring: two barriers a stage.
inline constexpr int kMinStages = 2, kMaxStages = 10;
inline constexpr int kBarrierBytes = 256;
static_assert(kBarrierBytes >= 2 * 8 * kMaxStages && kBarrierBytes % 128 == 0);
DUALGEMM_HOST_DEVICE constexpr int smem_bytes_of(const Config& config, int stages) {
  const int ring = stages * stage_bytes_of(config), sums = sums_bytes_of(config);
  return kBarrierBytes + (ring > sums ? ring : sums);
}

// CUDA C++ Programming Guide 13.0, "Compute Capabilities": of an SM, and what the system takes of
// it for each CTA. One CTA can have 99 KB.
inline constexpr int kSmemOfSm = 100 << 10, kSmemOfSystem = 1 << 10;

}  // namespace dualgemm::cuda::sm120a
