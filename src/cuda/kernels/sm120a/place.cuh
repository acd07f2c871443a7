// Where a CTA works, and where the rows of its stages lie.
#pragma once

#include <cstdint>

#include "cuda/device/group_tiles.cuh"
#include "cuda/kernels/common/tile_index.cuh"
#include "cuda/kernels/sm120a/config.hpp"
#include "cuda/kernels/sm120a/params.hpp"
#include "cuda/ptx/warp.cuh"

namespace dualgemm::cuda::sm120a {

struct Place {
  uint32_t m_begin, m_end;  // first row of the warp; where the rows end, perhaps before the tile
  uint32_t tile_begin;      // first row of the tile
  uint32_t swizzled_shift;  // from a row of A to its row of swizzled scales
  uint32_t batch;           // or expert
  uint32_t group_tile;      // of groups: in their table
  uint32_t first_col;       // of the tile
  uint32_t warp_n, warp_m;
  uint32_t row, quarter;  // lane / 4, lane % 4
};

// Tile `tile` of a problem without groups.
DUALGEMM_DEVICE void find_tile(const Params& params, uint32_t tile, uint32_t tile_m, Place& place) {
  const uint32_t whole = params.tiles_m * params.whole_n;
  const uint32_t of_batch = whole + params.halves_m * (params.tiles_n - params.whole_n);
  place.batch = tile / of_batch;
  tile -= place.batch * of_batch;
  const bool is_whole = tile < whole;
  const TileIndex index =
      is_whole ? tile_index(tile, params.tiles_m, params.whole_n)
               : tile_index(tile - whole, params.halves_m, params.tiles_n - params.whole_n);
  const uint32_t rows = is_whole ? tile_m : tile_m / 2;
  place.tile_begin = index.m * rows;
  place.m_end = min(params.m, place.tile_begin + rows);
  place.first_col = (is_whole ? index.n : params.whole_n + index.n) * kTileN;
}

// Tile `tile` of CTAs', which exists.
template <Config kCfg>
DUALGEMM_DEVICE Place place_of_thread(const Params& params, uint32_t tile) {
  const uint32_t thread = ptx::thread_index_anew(), warp = thread / 32, lane = thread % 32;
  Place place{};
  place.warp_n = warp % kWarpsN;
  place.warp_m = warp / kWarpsN;
  place.row = lane / 4;
  place.quarter = lane % 4;
  if (params.groups.table != nullptr) {
    const TileIndex index = tile_index(tile, number_of_tiles(params.groups), params.tiles_n);
    const GroupTile rows = tile_of(params.groups, index.m);
    place.group_tile = index.m;
    place.batch = rows.expert;
    place.tile_begin = rows.begin;
    place.m_end = rows.end;
    place.swizzled_shift = rows.padded_begin - rows.begin;
    place.first_col = index.n * kTileN;
  } else {
    find_tile(params, tile, tile_m_of(kCfg), place);
  }
  place.m_begin = place.tile_begin + place.warp_m * kCfg.groups * kGroupRows;
  return place;
}

// A row of a stage in memory.
struct StageRow {
  const uint8_t* codes;   // of the first stage; null: no such row, which is zero
  const uint8_t* scales;  // likewise
  int64_t scale_stage;    // bytes from the scales of one stage to those of the next
  uint32_t scale_word;    // and of one MMA's k to those of the next
};

// The scales of a row that lies as `view` says.
DUALGEMM_DEVICE StageRow with_scales(const uint8_t* codes, const ScaleView& view, uint32_t batch,
                                     uint32_t row) {
  return {codes, view.row(batch, row), view.place(kStageK16), view.place(kMmaK / 16)};
}

// Row `row` of the weights of a stage: of each unit 8 of Gate, then 8 of Up.
DUALGEMM_DEVICE StageRow row_of_weights(const Params& params, const Place& place, uint32_t row) {
  const uint32_t unit = row / kMmaRows, in_unit = row % kMmaRows;
  if (params.packed.units != nullptr) {
    const uint8_t* const packed = params.packed.units + place.batch * params.packed.batch_bytes +
                                  (place.first_col / kUnitCols + unit) * int64_t{kUnitBytes};
    return {packed + in_unit * kRowBytes,
            packed + sizeof(PackedUnit::codes) + in_unit * kScaleBytes, params.packed.chunk_bytes,
            kMmaK / 16};
  }
  const OperandView& view = in_unit < kUnitCols ? params.gate : params.up;
  const uint32_t col = place.first_col + unit * kUnitCols + in_unit % kUnitCols;
  if (col >= params.n) return {};
  return with_scales(view.row(place.batch, col), view.scales, place.batch, col);
}

// Row `index` of A of a stage.
DUALGEMM_DEVICE StageRow row_of_a(const Params& params, const Place& place, uint32_t index) {
  const uint32_t row = place.tile_begin + index;
  if (row >= place.m_end) return {};
  const uint32_t of_a = params.row_index(row);
  const bool shifted = params.a.scales.swizzled && params.row_index.of_a == nullptr;
  return with_scales(params.a.row(place.batch, of_a), params.a.scales, place.batch,
                     shifted ? row + place.swizzled_shift : of_a);
}

}  // namespace dualgemm::cuda::sm120a
