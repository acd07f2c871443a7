// What can be chosen about the sm_80 kernel, and what follows from the choice. Host and device.
#pragma once

#include <cstdint>

#include "cuda/device/a_type.hpp"
#include "cuda/device/activation.hpp"
#include "cuda/kernels/packed/packed_unit.hpp"

namespace dualgemm::cuda::sm80 {

// What one launch computes. Every element of a product is summed in the same order by all of them,
// if they have the same warps_k.
enum class Pass : int32_t {
  kFused = 0,       // D, with Gate and Up in one loop over k: mma's 16 rows are 8 of each
  kSequential = 1,  // D, first all of Gate, then all of Up, 16 rows at a time
  kGate = 2,        // R1 = A * Gate^T, in FP32
  kUp = 3,          // D, from R1 and Up
};

struct Config {
  AType a_type;
  bool prepared;  // weights: PackedUnit
  int groups;     // of 8 rows of A
  int warps_n;    // warps side by side along n, which share rows of A
  int warps_k;    // warps that divide the k of a tile: what decides the order of sums
  Pass pass;
  bool operator==(const Config&) const = default;
};

inline constexpr int kMmaRows = 16;  // of weights
inline constexpr int kHalfCols = kMmaRows / 2;
inline constexpr int kGroupRows = 8;                            // rows of A per mma: its N
inline constexpr int kChunkK = kUnitK;                          // elements along k of a stage
inline constexpr int kChunkK16 = kChunkK / 16;                  // the same in scales
inline constexpr int kWarpUnits = 4;                            // of 16 rows of weights, in a warp
inline constexpr int kRowBytes = 2 * kChunkK;                   // of A in a stage, 16 bits each
inline constexpr int kPieces = kRowBytes / 16;                  // of such a row
inline constexpr int kCodeBytes = sizeof(PackedUnit::codes);    // of a unit in a stage
inline constexpr int kScaleBytes = sizeof(PackedUnit::scales);  // likewise
inline constexpr int kItemFloats = 8;  // sums of a lane that are finished together

// Units that are multiplied in one loop over k.
DUALGEMM_HOST_DEVICE constexpr int loop_units_of(const Config& config) {
  return config.pass == Pass::kSequential ? kWarpUnits / 2 : kWarpUnits;
}
DUALGEMM_HOST_DEVICE constexpr int tile_m_of(const Config& config) {
  return config.groups * kGroupRows;
}
// Columns of D of a warp.
DUALGEMM_HOST_DEVICE constexpr int warp_cols_of(const Config& config) {
  return loop_units_of(config) * (config.pass == Pass::kFused ? kHalfCols : kMmaRows);
}
DUALGEMM_HOST_DEVICE constexpr int tile_n_of(const Config& config) {
  return config.warps_n * warp_cols_of(config);
}
DUALGEMM_HOST_DEVICE constexpr int threads_of(const Config& config) {
  return 32 * config.warps_n * config.warps_k;
}
// Second number of __launch_bounds__: as many CTAs as 64 K registers are to hold.
DUALGEMM_HOST_DEVICE constexpr int min_ctas_of(const Config& config) {
  const bool decodes_a = config.a_type == AType::kE2M1;
  const int registers = config.groups <= 2 ? 128 : config.groups > 4 || decodes_a ? 255 : 168;
  const int ctas = 65536 / (registers * threads_of(config));
  return ctas > 0 ? ctas : 1;
}

// A stage of the warps that share a part of k: rows of A, then each warp's weights.
DUALGEMM_HOST_DEVICE constexpr int a_bytes_of(const Config& config) {
  return tile_m_of(config) * kRowBytes;
}
DUALGEMM_HOST_DEVICE constexpr int warp_bytes_of(const Config& config) {
  return loop_units_of(config) * (kCodeBytes + kScaleBytes);
}
DUALGEMM_HOST_DEVICE constexpr int stage_bytes_of(const Config& config) {
  return a_bytes_of(config) + config.warps_n * warp_bytes_of(config);
}
// Items that a warp's sums are; each is finished by one of the warps that divide k.
DUALGEMM_HOST_DEVICE constexpr int items_of(const Config& config) {
  return kWarpUnits / 2 * config.groups;
}
DUALGEMM_HOST_DEVICE constexpr int sums_bytes_of(const Config& config) {
  const int slots = config.warps_k > 1 ? config.warps_k - 1 : 1;
  return slots * config.warps_n * items_of(config) * kItemFloats * 32 * 4;
}
// Where rows of A begin, and their scales: in front of the stages.
DUALGEMM_HOST_DEVICE constexpr int table_bytes_of(const Config& config) {
  return (tile_m_of(config) + (config.a_type == AType::kE2M1 ? tile_m_of(config) : 2)) * 8;
}
DUALGEMM_HOST_DEVICE constexpr int smem_bytes_of(const Config& config, int stages) {
  const int ring = config.warps_k * stages * stage_bytes_of(config);
  const int sums = sums_bytes_of(config);
  return table_bytes_of(config) + (ring > sums ? ring : sums);
}

inline constexpr int kMinStages = 2, kMaxStages = 3;

}  // namespace dualgemm::cuda::sm80
