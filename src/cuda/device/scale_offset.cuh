// Where a block scale lies: docs/formats.md, "Scale layouts".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

constexpr uint32_t kTileRows = 128, kTileCols = 4;  // of the swizzled layout

// The offset of scale (row, block) in its batch. ld: linear, scales from row to row; 0: swizzled
// 128x4, where tile_cols tiles lie side by side. Row: an integer type.
template <class Row>
DUALGEMM_DEVICE int64_t scale_offset(int64_t ld, uint32_t tile_cols, Row row, uint32_t block) {
  if (ld != 0) return static_cast<int64_t>(row) * ld + block;
  const int64_t tile = static_cast<int64_t>(row / kTileRows) * tile_cols + block / kTileCols;
  const auto in_tile = static_cast<uint32_t>(row % kTileRows);
  return tile * (kTileRows * kTileCols) + in_tile % 32 * 16 + in_tile / 32 * 4 + block % kTileCols;
}

}  // namespace dualgemm::cuda
