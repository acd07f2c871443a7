// What the epilogues with and without groups have in common.
//
// A lane has one column of Gate or of Up, for all rows of the tile. Rows are dealt out in turns, to
// Gate's warps and Up's warps; a warp leaves the numbers of the other's turns in shared memory, and
// finishes its own with what it finds there. A warp stores 32 neighbouring columns of a row.
#pragma once

#include "cuda/kernels/blackwell/finish_rows.cuh"
#include "cuda/kernels/blackwell/finished_tile.hpp"
#include "cuda/ptx/tcgen05_single.cuh"

namespace dualgemm::cuda::blackwell {

constexpr uint32_t kExchangeBarrier = 1;

// What a warp of the epilogue has: 32 columns of one of the two products.
struct WarpColumns {
  bool up;
  uint32_t in_tile;  // of this lane
  uint32_t col;      // the same in D
};

template <FinishedTile kTile>
DUALGEMM_DEVICE WarpColumns columns_of_warp(uint32_t n_begin, uint32_t warp) {
  const bool up = warp >= TurnsOf<kTile>::kProductWarps;
  const uint32_t lane = 32 * warp + threadIdx.x % 32;  // of TMEM
  const uint32_t in_tile = up ? lane - kTile.tile_n : lane;
  return {up, in_tile, n_begin + in_tile};
}

// What the warp's own product has of a turn that the other one finishes, at `acc`, to its column of
// rows in shared memory.
template <FinishedTile kTile>
DUALGEMM_DEVICE void leave_turn(uint32_t acc, float (*to)[kTile.tile_n], uint32_t column) {
  float sums[TurnsOf<kTile>::kTurnRows];
  ptx::tcgen05_ld_32x32b(acc, sums);
#pragma unroll
  for (int i = 0; i < TurnsOf<kTile>::kTurnRows; ++i) to[i][column] = sums[i];
}

// A turn of the warp's own, from row `first` of D on: one product is at `acc`, the other one in
// shared memory.
template <FinishedTile kTile, class Params>
DUALGEMM_DEVICE void finish_turn(const Params& params, const OutputRows& rows, uint32_t first,
                                 const WarpColumns& mine, const ColumnFactors& factors,
                                 uint32_t acc, const float (*from)[kTile.tile_n]) {
  constexpr int kRows = TurnsOf<kTile>::kTurnRows;
  float g[kRows], u[kRows];
  ptx::tcgen05_ld_32x32b(acc, g);
#pragma unroll
  for (int i = 0; i < kRows; ++i) u[i] = from[i][mine.in_tile];
  if (mine.up) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float gate = u[i];
      u[i] = g[i], g[i] = gate;
    }
  }
  finish_rows(params, rows, first, mine.col, factors, g, u);
}

}  // namespace dualgemm::cuda::blackwell
