// The order in which a grid's CTAs take tiles of D.
#pragma once

#include <cstdint>

#include "cuda/kernels/common/block_rows.hpp"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

struct TileIndex {
  uint32_t m, n;
};
DUALGEMM_DEVICE TileIndex tile_index(uint32_t tile, uint32_t tiles_m, uint32_t tiles_n) {
  const uint32_t block = tile / (kBlockRows * tiles_n), first = block * kBlockRows;
  const uint32_t rows = min(kBlockRows, tiles_m - first);
  const uint32_t inside = tile - first * tiles_n, column = inside / rows;
  return {first + inside - column * rows, column};
}

}  // namespace dualgemm::cuda
