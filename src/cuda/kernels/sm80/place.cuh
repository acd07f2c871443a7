// Where a warp works, and where the operands of its tile lie.
#pragma once

#include <cstdint>

#include "cuda/device/group_tiles.cuh"
#include "cuda/kernels/common/tile_index.cuh"
#include "cuda/kernels/sm80/config.hpp"
#include "cuda/kernels/sm80/params.hpp"
#include "cuda/ptx/warp.cuh"

namespace dualgemm::cuda::sm80 {

struct Place {
  uint32_t m_begin, m_end;  // first row of the tile; where the rows end, perhaps before the tile
  uint32_t swizzled_shift;  // from a row of A to its row of swizzled scales
  uint32_t batch;           // or expert
  uint32_t group_tile;      // of groups: in their table
  uint32_t tile_col, col;   // first column of the tile, of the warp
  uint32_t first_group;     // the warp's, of 8 rows
  uint32_t warp_n, warp_k;
  uint32_t row, quarter;  // lane / 4: of 8; lane % 4: the 16-block of a chunk
};

// Thread `thread` of a tile's, tile `tile`, which exists.
DUALGEMM_DEVICE Place place_of(const Params& params, const TileShape& shape, uint32_t tile,
                               uint32_t thread) {
  const uint32_t warp = thread / 32, lane = thread % 32;
  Place place{};
  place.warp_n = warp % shape.warps_n;
  place.first_group = warp / shape.warps_n % shape.warps_m * shape.groups;
  place.warp_k = warp / (shape.warps_n * shape.warps_m);
  place.row = lane / 4;
  place.quarter = lane % 4;
  uint32_t column;
  if (params.groups.table != nullptr) {
    const TileIndex index = tile_index(tile, number_of_tiles(params.groups), params.tiles_n);
    const GroupTile rows = tile_of(params.groups, index.m);
    place.group_tile = index.m;
    place.batch = rows.expert;
    place.m_begin = rows.begin;
    place.m_end = rows.end;
    place.swizzled_shift = rows.padded_begin - rows.begin;
    column = index.n;
  } else {
    const uint32_t tiles = params.tiles_m * params.tiles_n;
    place.batch = tile / tiles;
    const TileIndex index = tile_index(tile - place.batch * tiles, params.tiles_m, params.tiles_n);
    place.m_begin = index.m * shape.tile_m;
    place.m_end = params.m;
    column = index.n;
  }
  place.tile_col = column * shape.tile_n;
  place.col = place.tile_col + place.warp_n * shape.warp_cols;
  return place;
}
template <Config kCfg>
DUALGEMM_DEVICE Place place_of_thread(const Params& params, uint32_t tile) {
  return place_of(params, tile_shape_of(kCfg), tile, ptx::thread_index_anew());
}

// Where the rows of A of a tile begin, and their scales. In shared memory: made from the index for
// each stage they would take registers.
template <Config kCfg>
struct TileRows {
  const uint8_t* rows[tile_m_of(kCfg)];  // null: no such row
  const uint8_t* scales[kCfg.a_type == AType::kE2M1 ? tile_m_of(kCfg) : 2];
};

// By all threads; the caller's barrier follows.
template <Config kCfg>
DUALGEMM_DEVICE void find_rows(const Params& params, const Place& place, TileRows<kCfg>& to) {
  const bool indexed = params.row_index.of_a != nullptr;
  for (uint32_t i = ptx::thread_index_anew(); i < tile_m_of(kCfg); i += threads_of(kCfg)) {
    const uint32_t row = place.m_begin + i;
    const bool exists = row < place.m_end;
    const uint32_t of_a = exists ? params.row_index(row) : 0;
    to.rows[i] = exists ? params.a.rows + place.batch * params.a.batch_bytes +
                              static_cast<int64_t>(of_a) * params.a.row_bytes
                        : nullptr;
    if constexpr (kCfg.a_type == AType::kE2M1) {
      const bool shifted = params.a.scales.swizzled && !indexed && exists;
      to.scales[i] = params.a.scales.row(place.batch, shifted ? row + place.swizzled_shift : of_a);
    }
  }
}

}  // namespace dualgemm::cuda::sm80
