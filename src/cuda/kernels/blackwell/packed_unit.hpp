// Prepared weights: Gate and Up together in the order in which a pair's stages hold them, whatever
// the tile. docs/formats.md, "Prepared weights", draws them.
//
// Each batch (k-tiles of 256, units of 8 columns of D) has the codes of all units, then their
// scales. A CTA's part of a stage is a run of units of codes, half of the tile's, and all of the
// tile's units of scales, of which it loads half for both: a box of each of two maps. What lies at
// or after k is zero, and what the last unit has beyond n; units beyond the last one are zeros of
// the TMA unit.
#pragma once

#include <cstdint>

#include "cuda/kernels/blackwell/stage.hpp"

namespace dualgemm::cuda::blackwell {

inline constexpr int kUnitCols = 8;  // of D: eight rows of Gate and the same of Up

// One k-tile of a unit. Codes: rows of 128 bytes as a swizzle atom of the tensor core, 16-byte
// chunk c of row r at chunk c ^ r. Scales: those of K = 256 of row after row.
struct UnitCodes {
  uint8_t rows[2][kUnitCols][kRowBytes];  // [Gate, Up]
};
struct UnitScales {
  uint8_t rows[2][kUnitCols][kTileK / 16];
};
static_assert(sizeof(UnitCodes) == 2 * kSwizzleAlignment, "each matrix fills whole atoms");
inline constexpr int kUnitBytes = sizeof(UnitCodes) + sizeof(UnitScales);

}  // namespace dualgemm::cuda::blackwell
