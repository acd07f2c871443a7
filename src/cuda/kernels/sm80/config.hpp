// What can be chosen about the sm_80 kernel, and what follows from the choice. Host and device.
#pragma once

#include <cstdint>

#include "cuda/device/a_type.hpp"
#include "cuda/device/activation.hpp"

namespace dualgemm::cuda::sm80 {

// What one launch computes. Every element of a product is summed in the same order by all of them.
enum class Pass : int32_t {
  kFused = 0,       // D, with Gate and Up in one loop over k: mma's 16 rows are 8 of each
  kSequential = 1,  // D, first all of Gate, then all of Up, 16 rows at a time
  kGate = 2,        // R1 = A * Gate^T, in FP32
  kUp = 3,          // D, from R1 and Up
  kGroups = 4,      // as kFused, of groups of experts: tiles are those of a table. What that takes
                    // of registers would leave one CTA an SM instead of two without groups
                    // (sm_80, e2m1, 64 rows: 137, not 125)
};
DUALGEMM_HOST_DEVICE constexpr bool is_fused(Pass pass) {
  return pass == Pass::kFused || pass == Pass::kGroups;
}

struct Config {
  AType a_type;
  int tile_m;   // rows of A per tile, a multiple of kGroupRows
  int warps_n;  // warps side by side along n; each has warp_cols_of() columns of D
  Pass pass;
  bool operator==(const Config&) const = default;
};

inline constexpr int kMmaRows = 16;  // of weights
inline constexpr int kHalfCols = kMmaRows / 2;
inline constexpr int kGroupRows = 8;     // rows of A per mma: its N
inline constexpr int kTileK = 128;       // elements along k that a warp takes at a time
inline constexpr int kTileK16 = 8;       // the same in scales
inline constexpr int kThreadCodes = 32;  // neighbours along k that one thread takes of a row
// Warps that share a tile's k. The same in every Config, so that neither M nor the tile
// changes the bits of a row.
inline constexpr int kWarpsK = 4;

DUALGEMM_HOST_DEVICE constexpr int threads_of(const Config& config) {
  return 32 * config.warps_n * kWarpsK;
}
// Second number of __launch_bounds__; 0: none. 1 lets ptxas take more than 128 registers, where it
// would spill 16 bytes for sm_100a and sm_120a (CUDA 13.0); for sm_80 and sm_90 it changes nothing.
// kSequential with 8 rows would spill 8 bytes on sm_80 to stay at 96, groups of 64 rows of halves
// 20 bytes to stay at 128 instead of 150.
DUALGEMM_HOST_DEVICE constexpr int min_ctas_of(const Config& config) {
  const bool is_tall = config.tile_m > kGroupRows;
  if (config.pass == Pass::kGroups && is_tall) return 1;
  return config.a_type == AType::kE2M1 && (is_tall || config.pass == Pass::kSequential) ? 1 : 0;
}
DUALGEMM_HOST_DEVICE constexpr int row_groups_of(const Config& config) {
  return config.tile_m / kGroupRows;
}
DUALGEMM_HOST_DEVICE constexpr int warp_cols_of(const Config& config) {
  return is_fused(config.pass) ? kHalfCols : kMmaRows;
}
DUALGEMM_HOST_DEVICE constexpr int tile_n_of(const Config& config) {
  return config.warps_n * warp_cols_of(config);
}
// A tile has whole blocks of 16 columns.
DUALGEMM_HOST_DEVICE constexpr bool writes_nvfp4(const Config& config) {
  return tile_n_of(config) % 16 == 0;
}

}  // namespace dualgemm::cuda::sm80
