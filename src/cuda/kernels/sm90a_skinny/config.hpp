// What can be chosen about the kernel for few rows of a, and what follows from the choice: bytes,
// stages, threads. Host and device.
#pragma once

#include <cstdint>

#include "cuda/device/a_type.hpp"
#include "cuda/device/activation.hpp"

namespace dualgemm::cuda::sm90a_skinny {

struct Config {
  AType a_type;
  int units;  // of 8 columns of d per tile: 8 rows of gate and 8 of up are mma's 16
  bool operator==(const Config&) const = default;
};

inline constexpr int kTokens = 8;  // rows of a at the most: mma's N
inline constexpr int kUnitCols = 8;
inline constexpr int kBlockK = 256;              // elements along k that a warp takes at a time
inline constexpr int kBlockBytes = kBlockK / 2;  // of codes of one row
inline constexpr int kWarps = 16;                // each takes every 16th block of k
inline constexpr int kThreads = 32 * kWarps;
inline constexpr int kBlockScales = kBlockK / 16;  // of one row, a byte each
// Of each warp on their way. The SM takes about 70 KB of copies before a warp that asks for more
// has to wait, with data that it could work on: docs/kernels/sm90a_skinny.md, "The start".
inline constexpr int kUnitsAhead = 2;
inline constexpr int kScaleBlockBytes = 512;   // swizzled scales: 128 rows x 4
inline constexpr int kStepK = 64;              // k is a multiple of it: a word of four scales
inline constexpr int kScaleAlignment = 4;      // of rows of scales: a copy's four bytes
inline constexpr int kCodeAlignment = 16;      // of rows of codes
inline constexpr int kSmemBytes = 227 * 1024;  // of one CTA

DUALGEMM_HOST_DEVICE constexpr int cols_of(const Config& config) {
  return config.units * kUnitCols;
}

template <Config kCfg>
struct Budget {
  // Blocks of k of each warp that there is room for.
  static constexpr int kStages = (kUnitsAhead + kCfg.units - 1) / kCfg.units;
  static_assert(kCfg.units * 4 <= kWarps, "four warps finish a unit");
};

}  // namespace dualgemm::cuda::sm90a_skinny
