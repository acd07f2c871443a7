// The order in which a grid's CTAs take tiles of D.
#pragma once

#include <cstdint>

#include "cuda/kernels/common/block_rows.hpp"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

struct TileIndex {
  uint32_t m, n;
};
// Tile number `tile`, in block number `block`. divide(number, rows): a quotient.
template <class Divide>
DUALGEMM_DEVICE TileIndex tile_of_block(uint32_t tile, uint32_t block, uint32_t tiles_m,
                                        uint32_t tiles_n, const Divide& divide) {
  const uint32_t first = block * kBlockRows, rows = min(kBlockRows, tiles_m - first);
  const uint32_t inside = tile - first * tiles_n, column = divide(inside, rows);
  return {first + inside - column * rows, column};
}
DUALGEMM_DEVICE TileIndex tile_index(uint32_t tile, uint32_t tiles_m, uint32_t tiles_n) {
  return tile_of_block(tile, tile / (kBlockRows * tiles_n), tiles_m, tiles_n,
                       [](uint32_t number, uint32_t rows) { return number / rows; });
}

}  // namespace dualgemm::cuda
