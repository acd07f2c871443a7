// The loop over k: sums of 16 rows of weights with the rows of a tile.
//
// A warp's 16 rows of mma are 8 of Gate and the same 8 of Up (both sums of an output are then in
// one thread), or 16 of one operand; its 8 columns are rows of A. kWarpsK warps divide the
// k-tiles of a tile into contiguous parts.
#pragma once

#include <cstdint>

#include "cuda/device/group_tiles.cuh"
#include "cuda/kernels/sm80/config.hpp"
#include "cuda/kernels/sm80/fragments.cuh"
#include "cuda/kernels/sm80/params.hpp"

namespace dualgemm::cuda::sm80 {

// Sums of one warp: [group of 8 rows of A][mma's d].
template <Config kCfg>
using Accumulators = float[row_groups_of(kCfg)][4];

// Where a warp works.
struct Place {
  uint32_t m_begin, m_end;  // first row of the tile; where the rows end, perhaps before the tile
  uint32_t swizzled_shift;  // from a row of A to its row of swizzled scales
  uint32_t batch;           // or expert
  uint32_t group_tile;      // of groups: in their table
  uint32_t col;             // of this thread's first sums
  uint32_t warp_n, warp_k;
  uint32_t row_in_group, quarter;  // lane / 4: row of 8; lane % 4: part of the k-tile
};

// Tile `tile` of CTAs', which exists.
template <Config kCfg>
DUALGEMM_DEVICE Place place_of_thread(const Params& params, uint32_t tile) {
  constexpr bool kGrouped = kCfg.pass == Pass::kGroups;
  const uint32_t tiles_m = kGrouped ? number_of_tiles(params.groups) : params.tiles_m;
  const uint32_t column = tile / tiles_m;
  const uint32_t batch = kGrouped ? 0 : column / params.tiles_n;
  const uint32_t tile_m = tile - column * tiles_m;
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Place place;
  if constexpr (kGrouped) {
    const GroupTile rows = tile_of(params.groups, tile_m);
    place.group_tile = tile_m;
    place.batch = rows.expert;
    place.m_begin = rows.begin;
    place.m_end = rows.end;
    place.swizzled_shift = rows.padded_begin - rows.begin;
  } else {
    place.group_tile = 0;
    place.batch = batch;
    place.m_begin = tile_m * kCfg.tile_m;
    place.m_end = params.m;
    place.swizzled_shift = 0;
  }
  place.warp_n = warp % kCfg.warps_n;
  place.warp_k = warp / kCfg.warps_n;
  place.row_in_group = lane / 4;
  place.quarter = lane % 4;
  place.col = (column - batch * params.tiles_n) * tile_n_of(kCfg) +
              place.warp_n * warp_cols_of(kCfg) + place.row_in_group;
  return place;
}

// One thread's rows of mma's 16: row_in_group and 8 more.
struct WeightRows {
  RowCursor low, high;
};

DUALGEMM_DEVICE WeightRows rows_of_both(const Params& params, const Place& place) {
  return {row_cursor(params.gate, place.batch, place.col, params.n, place.col),
          row_cursor(params.up, place.batch, place.col, params.n, place.col)};
}

DUALGEMM_DEVICE WeightRows rows_of_one(const Params& params, const Place& place,
                                       const OperandView& weights) {
  const uint32_t high = place.col + kMmaRows / 2;
  return {row_cursor(weights, place.batch, place.col, params.n, place.col),
          row_cursor(weights, place.batch, high, params.n, high)};
}

// Where the rows of a group's tile begin, and their scales. In shared memory: made from the index
// for each k-tile, they spilled (64 rows of halves).
template <Config kCfg>
struct TileRows {
  const uint8_t* rows[kCfg.tile_m];  // null: no such row
  const uint8_t* scales[kCfg.a_type == AType::kE2M1 ? kCfg.tile_m : 1];
};
template <Config kCfg>
DUALGEMM_DEVICE TileRows<kCfg>& rows_of_tile() {
  __shared__ TileRows<kCfg> rows;
  return rows;
}

// By all threads; returns behind a barrier.
template <Config kCfg>
DUALGEMM_DEVICE void find_rows(const Params& params, const Place& place) {
  TileRows<kCfg>& to = rows_of_tile<kCfg>();
  const bool indexed = params.row_index.of_a != nullptr;
  for (uint32_t i = threadIdx.x; i < kCfg.tile_m; i += blockDim.x) {
    const uint32_t row = place.m_begin + i;
    const bool exists = row < place.m_end;
    const uint32_t of_a = exists ? params.row_index(row) : 0;
    const RowCursor cursor = row_cursor(params.a, place.batch, of_a, exists ? ~0u : 0,
                                        indexed ? of_a : row + place.swizzled_shift);
    to.rows[i] = cursor.row;
    if constexpr (kCfg.a_type == AType::kE2M1) to.scales[i] = cursor.scales;
  }
  __syncwarp();
  __syncthreads();
}

template <Config kCfg>
DUALGEMM_DEVICE RowCursor cursor_of_a(const Params& params, const Place& place, uint32_t in_tile) {
  if constexpr (kCfg.pass == Pass::kGroups) {
    const TileRows<kCfg>& of = rows_of_tile<kCfg>();
    const uint8_t* scales = nullptr;
    if constexpr (kCfg.a_type == AType::kE2M1) scales = of.scales[in_tile];
    return {of.rows[in_tile], scales, params.a.scales.swizzled};
  } else {
    // From the parameters, each time: held in a register, the sequential kernels for halves took
    // 148 of them, and an SM held one CTA instead of two (sm_90, 64 rows).
    const uint32_t row = place.m_begin + in_tile;
    return row_cursor(params.a, place.batch, row, params.m, row);
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void load_a(const Params& params, const Place& place, uint32_t group, uint32_t k16,
                            Steps& steps) {
  const RowCursor cursor =
      cursor_of_a<kCfg>(params, place, group * kGroupRows + place.row_in_group);
  if constexpr (kCfg.a_type == AType::kE2M1) {
    decode<false>(load_packed(cursor, k16, params.k16, params.aligned16), steps);
  } else {
    load_halves(cursor, k16, params.k16, params.aligned16, steps);
  }
}

// This warp's part of the k-tiles.
template <Config kCfg>
DUALGEMM_DEVICE void multiply(const Params& params, const Place& place, const WeightRows& rows,
                              Accumulators<kCfg>& sums) {
  constexpr bool kBf16 = kCfg.a_type == AType::kBF16;
  const uint32_t k_tiles = (params.k16 + kTileK16 - 1) / kTileK16;
  const uint32_t begin = k_tiles * place.warp_k / kWarpsK;
  const uint32_t end = k_tiles * (place.warp_k + 1) / kWarpsK;
  const auto load = [&](const RowCursor& cursor, uint32_t k_tile) {
    return load_packed(cursor, k_tile * kTileK16 + 2 * place.quarter, k_tile < end ? params.k16 : 0,
                       params.aligned16);
  };
  Packed next_low = load(rows.low, begin), next_high = load(rows.high, begin);
#pragma unroll 1
  for (uint32_t k_tile = begin; k_tile < end; ++k_tile) {
    Steps low_steps, high_steps;
    decode<kBf16>(next_low, low_steps);
    decode<kBf16>(next_high, high_steps);
    next_low = load(rows.low, k_tile + 1);
    next_high = load(rows.high, k_tile + 1);
#pragma unroll
    for (int t = 0; t < row_groups_of(kCfg); ++t) {
      Steps a_steps;
      load_a<kCfg>(params, place, t, k_tile * kTileK16 + 2 * place.quarter, a_steps);
      __syncwarp();  // the loads have branches, mma needs the whole warp
#pragma unroll
      for (int step = 0; step < 8; ++step) {
        const uint32_t weights[4] = {low_steps[step][0], high_steps[step][0], low_steps[step][1],
                                     high_steps[step][1]};
        ptx::mma_m16n8k16<kBf16>(sums[t], weights, a_steps[step]);
      }
    }
  }
}

}  // namespace dualgemm::cuda::sm80
