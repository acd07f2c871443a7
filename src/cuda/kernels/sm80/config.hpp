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
  int groups;     // of 8 rows of A, of a warp
  int units;      // of 16 rows of weights, of a warp; a multiple of 2
  int warps_m;    // warps with different rows of A
  int warps_n;    // warps side by side along n, which share rows of A and decoded weights
  int warps_k;    // warps that divide the k of a tile
  int producers;  // warps that fill stages for the others; 0: each warp fills its own
  Pass pass;
  bool operator==(const Config&) const = default;
};

inline constexpr int kMmaRows = 16;  // of weights
inline constexpr int kHalfCols = kMmaRows / 2;
inline constexpr int kGroupRows = 8;                            // rows of A per mma: its N
inline constexpr int kChunkK = kUnitK;                          // elements along k of a stage
inline constexpr int kChunkK16 = kChunkK / 16;                  // the same in scales
inline constexpr int kRowBytes = 2 * kChunkK;                   // of A in a stage, 16 bits each
inline constexpr int kPieces = kRowBytes / 16;                  // of such a row
inline constexpr int kCodeBytes = sizeof(PackedUnit::codes);    // of a unit in a stage
inline constexpr int kScaleBytes = sizeof(PackedUnit::scales);  // likewise
inline constexpr int kItemFloats = 8;  // sums of a lane that are finished together

// Units that are multiplied in one loop over k.
DUALGEMM_HOST_DEVICE constexpr int loop_units_of(const Config& config) {
  return config.pass == Pass::kSequential ? config.units / 2 : config.units;
}
// Whether warps of their own decode weights once for the CTA, into shared memory; else each warp
// decodes what it multiplies, in registers.
DUALGEMM_HOST_DEVICE constexpr bool shares_weights(const Config& config) {
  return config.producers > 0;
}
DUALGEMM_HOST_DEVICE constexpr int warp_rows_of(const Config& config) {
  return config.groups * kGroupRows;
}
DUALGEMM_HOST_DEVICE constexpr int tile_m_of(const Config& config) {
  return config.warps_m * warp_rows_of(config);
}
// Columns of D of a warp.
DUALGEMM_HOST_DEVICE constexpr int warp_cols_of(const Config& config) {
  return loop_units_of(config) * (config.pass == Pass::kFused ? kHalfCols : kMmaRows);
}
DUALGEMM_HOST_DEVICE constexpr int tile_n_of(const Config& config) {
  return config.warps_n * warp_cols_of(config);
}
// Warps that multiply.
DUALGEMM_HOST_DEVICE constexpr int warps_of(const Config& config) {
  return config.warps_m * config.warps_n * config.warps_k;
}
DUALGEMM_HOST_DEVICE constexpr int threads_of(const Config& config) {
  return 32 * (warps_of(config) + config.producers);
}
// Second number of __launch_bounds__: as many CTAs as 64 K registers are to hold.
DUALGEMM_HOST_DEVICE constexpr int min_ctas_of(const Config& config) {
  const bool decodes_many = config.a_type == AType::kE2M1 && !shares_weights(config);
  const int registers = config.groups <= 2 ? 128 : decodes_many ? 255 : 168;
  const int ctas = 65536 / (registers * threads_of(config));
  return ctas > 0 ? ctas : 1;
}

// A stage: rows of A, then weights, as they lie or, where they are shared, decoded.
DUALGEMM_HOST_DEVICE constexpr int a_bytes_of(const Config& config) {
  return tile_m_of(config) * kRowBytes;
}
DUALGEMM_HOST_DEVICE constexpr int stage_bytes_of(const Config& config) {
  const int unit_bytes = shares_weights(config) ? kMmaRows * kRowBytes : kCodeBytes + kScaleBytes;
  return a_bytes_of(config) + config.warps_n * loop_units_of(config) * unit_bytes;
}
// Items that a warp's sums are; each is finished by one of the warps that divide k.
DUALGEMM_HOST_DEVICE constexpr int items_of(const Config& config) {
  return config.units / 2 * config.groups;
}
// Those that are in shared memory at the same time.
DUALGEMM_HOST_DEVICE constexpr int batch_items_of(const Config& config) {
  return shares_weights(config) ? config.groups : items_of(config);
}
DUALGEMM_HOST_DEVICE constexpr int sums_bytes_of(const Config& config) {
  const int slots = config.warps_k > 1 ? config.warps_k - 1 : 1;
  return slots * config.warps_m * config.warps_n * batch_items_of(config) * kItemFloats * 32 * 4;
}
inline constexpr int kMinStages = 2, kMaxStages = 3;

// In front of the stages: where rows of A begin, and their scales; barriers of shared stages.
DUALGEMM_HOST_DEVICE constexpr int table_bytes_of(const Config& config) {
  return (tile_m_of(config) + (config.a_type == AType::kE2M1 ? tile_m_of(config) : 2)) * 8;
}
// Shared stages begin at multiples of 128 bytes.
DUALGEMM_HOST_DEVICE constexpr int front_bytes_of(const Config& config) {
  if (!shares_weights(config)) return table_bytes_of(config);
  return (table_bytes_of(config) + 2 * kMaxStages * 8 + kRowBytes - 1) / kRowBytes * kRowBytes;
}
DUALGEMM_HOST_DEVICE constexpr int smem_bytes_of(const Config& config, int stages) {
  const int ring = config.warps_k * stages * stage_bytes_of(config);
  const int sums = sums_bytes_of(config);
  return front_bytes_of(config) + (ring > sums ? ring : sums);
}

// What of a Config decides where its warps work.
struct TileShape {
  uint32_t tile_m, tile_n;
  uint32_t groups, warp_cols;  // of a warp
  uint32_t warps_m, warps_n;
};
DUALGEMM_HOST_DEVICE constexpr TileShape tile_shape_of(const Config& config) {
  return {static_cast<uint32_t>(tile_m_of(config)), static_cast<uint32_t>(tile_n_of(config)),
          static_cast<uint32_t>(config.groups),     static_cast<uint32_t>(warp_cols_of(config)),
          static_cast<uint32_t>(config.warps_m),    static_cast<uint32_t>(config.warps_n)};
}

}  // namespace dualgemm::cuda::sm80
