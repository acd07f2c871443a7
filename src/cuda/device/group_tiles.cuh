// A kernel's view of the table of tiles. Where the kernel begins before the grid in front of it has
// ended, only after it has waited.
#pragma once

#include <cstdint>

#include "cuda/device/group_tiles.hpp"
#include "cuda/ptx/global_load.cuh"

namespace dualgemm::cuda {

// An entry as it is loaded: who asks for one ahead of its use keeps it so, because taking it apart
// would wait for it.
DUALGEMM_DEVICE uint4 load_group_words(const GroupTile* from) {
  return ptx::ld_global(reinterpret_cast<const uint4*>(from));
}

DUALGEMM_DEVICE GroupTile group_tile_of(const uint4& words) {
  return {words.x & 0x7FFFFFFFu, words.x >> 31, words.y, words.z, words.w};
}

DUALGEMM_DEVICE uint32_t number_of_tiles(const GroupTiles& groups) {
  return group_tile_of(load_group_words(groups.table)).expert;
}

// Tile `index`, below number_of_tiles().
DUALGEMM_DEVICE uint4 tile_words_of(const GroupTiles& groups, uint32_t index) {
  return load_group_words(groups.table + 1 + index);
}
DUALGEMM_DEVICE GroupTile tile_of(const GroupTiles& groups, uint32_t index) {
  return group_tile_of(tile_words_of(groups, index));
}

}  // namespace dualgemm::cuda
