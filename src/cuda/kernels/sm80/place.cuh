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
  uint32_t col;             // first column of the warp
  uint32_t warp_n, warp_k;
  uint32_t row, quarter;  // lane / 4: of 8; lane % 4: the 16-block of a chunk
};

// As tile_index(), where the host and the usual rows of a block spare divisions, which take 25
// instructions and 100 cycles each.
DUALGEMM_DEVICE TileIndex find_tile(const Params& params, uint32_t tile, uint32_t tiles_m) {
  return tile_of_block(tile, quotient(tile, params.block_tiles), tiles_m, params.tiles_n,
                       [](uint32_t number, uint32_t rows) {
                         if (rows == 1) return number;
                         return rows == kBlockRows ? number / kBlockRows : number / rows;
                       });
}

// Thread `thread` of a tile's, tile `tile`, which exists.
DUALGEMM_DEVICE Place place_of(const Params& params, const TileShape& shape, uint32_t tile,
                               uint32_t thread) {
  const uint32_t warp = thread / 32, lane = thread % 32;
  Place place{};
  place.warp_n = warp % shape.warps_n;
  place.warp_k = warp / shape.warps_n;
  place.row = lane / 4;
  place.quarter = lane % 4;
  const bool grouped = params.groups.table != nullptr;
  if (!grouped) place.batch = quotient(tile, params.batch_tiles);
  const TileIndex index = find_tile(params, tile - place.batch * params.batch_tiles.value,
                                    grouped ? number_of_tiles(params.groups) : params.tiles_m);
  if (grouped) {
    const GroupTile rows = tile_of(params.groups, index.m);
    place.group_tile = index.m;
    place.batch = rows.expert;
    place.m_begin = rows.begin;
    place.m_end = rows.end;
    place.swizzled_shift = rows.padded_begin - rows.begin;
  } else {
    place.m_begin = index.m * shape.tile_m;
    place.m_end = params.m;
  }
  place.col = index.n * shape.tile_n + place.warp_n * shape.warp_cols;
  return place;
}
template <Config kCfg>
DUALGEMM_DEVICE Place place_of_thread(const Params& params, uint32_t tile) {
  TileShape shape = tile_shape_of(kCfg);
  if (item_kind_of(kCfg) == ItemKind::kAny && makes_one_product(params.pass))
    shape.tile_n *= 2, shape.warp_cols *= 2;
  return place_of(params, shape, tile, ptx::thread_index_anew());
}

// Where a row of A begins, and its scales, if it has any.
struct RowOfA {
  const uint8_t* row;
  const uint8_t* scales;
};
// The same of all rows of a wide tile, in shared memory.
struct RowTable {
  const uint8_t* rows[kMaxTileM];
  const uint8_t* scales[kMaxTileM];
};
// Row `row` of the products of a tile's batch or expert. A row that does not exist is the last one,
// whose sums stay unused there: so nothing branches around loads.
template <bool kHasScales>
DUALGEMM_DEVICE RowOfA row_of_a(const Params& params, const Place& place, uint32_t row) {
  row = min(row, max(place.m_end, 1) - 1);
  const uint32_t of_a = params.row_index(row);
  RowOfA at{params.a.row(place.batch, of_a), nullptr};
  if constexpr (kHasScales) {
    const bool shifted = params.a.scales.swizzled && params.row_index.of_a == nullptr;
    at.scales = params.a.scales.row(place.batch, shifted ? row + place.swizzled_shift : of_a);
  }
  return at;
}

}  // namespace dualgemm::cuda::sm80
