// What can be chosen about the sm_80 kernel, and what follows from the choice. Host and device.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"

namespace dualgemm::cuda::sm80 {

// The type that a comes in.
enum class AType : int32_t { kE2M1 = 0, kF16 = 1, kBF16 = 2 };

struct Config {
  AType a_type;
  int token_blocks;  // of 8 rows of a per tile: mma's N
  int warps_n;       // warps side by side along n; each has kWarpCols columns of d
  bool operator==(const Config&) const = default;
};

inline constexpr int kWarpCols = 8;      // of d per warp: 8 rows of gate and 8 of up are mma's 16
inline constexpr int kTokenBlock = 8;    // rows of a per mma
inline constexpr int kBlockK = 128;      // elements along k that a warp takes at a time
inline constexpr int kBlockK16 = 8;      // the same in scales
inline constexpr int kThreadCodes = 32;  // neighbours along k that one thread takes of a row
// Warps that share a tile's blocks of k. The same in every Config, so that neither M nor the tile
// changes the bits of a row.
inline constexpr int kWarpsK = 4;

DUALGEMM_HOST_DEVICE constexpr int threads_of(const Config& config) {
  return 32 * config.warps_n * kWarpsK;
}
DUALGEMM_HOST_DEVICE constexpr int tile_m_of(const Config& config) {
  return config.token_blocks * kTokenBlock;
}
DUALGEMM_HOST_DEVICE constexpr int tile_n_of(const Config& config) {
  return config.warps_n * kWarpCols;
}

}  // namespace dualgemm::cuda::sm80
