// A kernel's view of the table of tiles. Where the kernel begins before the grid in front of it has
// ended, only after it has waited.
#pragma once

#include <cstdint>

#include "cuda/device/group_tiles.hpp"
#include "cuda/ptx/global_load.cuh"

namespace dualgemm::cuda {

DUALGEMM_DEVICE GroupTile load_group_tile(const GroupTile* from) {
  const uint4 words = ptx::ld_global(reinterpret_cast<const uint4*>(from));
  return {words.x & 0x7FFFFFFFu, words.x >> 31, words.y, words.z, words.w};
}

DUALGEMM_DEVICE uint32_t number_of_tiles(const GroupTiles& groups) {
  return load_group_tile(groups.table).expert;
}

// Tile `index`, below number_of_tiles().
DUALGEMM_DEVICE GroupTile tile_of(const GroupTiles& groups, uint32_t index) {
  return load_group_tile(groups.table + 1 + index);
}

}  // namespace dualgemm::cuda
