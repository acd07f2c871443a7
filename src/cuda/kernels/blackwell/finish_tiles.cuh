// The epilogue over the tiles of groups, beside the next tile's loads and MMAs: grouped.cuh of
// sm100a_skinny and of sm100a_w4a16.
#pragma once

#include "cuda/device/pipeline.cuh"
#include "cuda/kernels/blackwell/grouped_tiles.cuh"
#include "cuda/kernels/blackwell/turns.cuh"

namespace dualgemm::cuda::blackwell {

// [turn % 2][row: those that Gate's warps finish, then Up's][column]
template <FinishedTile kTile>
using Exchange = float[2][2 * TurnsOf<kTile>::kTurnRows][kTile.tile_n];

// Runs on: warps 0 .. kEpilogueWarps-1.   Waits: the grid before, acc_full[acc].   Arrives:
// acc_empty[acc].
// Storage: with the barriers and `exchange`.
template <FinishedTile kTile, class Params, class Storage>
DUALGEMM_DEVICE void finish_tiles(const Params& params, Storage& smem, uint32_t tmem_base,
                                  uint32_t warp) {
  constexpr uint32_t kRows = TurnsOf<kTile>::kTurnRows;
  RingPosition<TurnsOf<kTile>::kAccs> acc;
  uint32_t place = 0;  // of the turn, in `exchange`
  ptx::griddepcontrol_wait();
#pragma unroll 1
  for (GroupedTiles<kTile.tile_m> tiles(params); tiles.is_valid();
       tiles.advance(params), acc.advance()) {
    tiles.ask_for_next(params);
    const WarpColumns mine = columns_of_warp<kTile>(tiles.column_tile() * kTile.tile_n, warp);
    const ColumnFactors factors = factors_of(params, tiles.rows().expert, mine.col);
    const OutputRows rows = rows_of_group(params, tiles.rows());
    const uint32_t begin = tiles.rows().begin, num_rows = rows.end - begin;
    const uint32_t from =
        tmem_base + acc.stage * kTile.tile_m + (32 * warp << 16);  // its own quarter

    if (params.output == OutputType::kE2M1 && !mine.up)
      clear_scales(params, rows, begin, kTile.tile_m, mine.col - threadIdx.x % 32);
    ptx::mbarrier_wait_parity(&smem.acc_full[acc.stage], acc.round_parity);
    __syncwarp();
    ptx::tcgen05_fence_after_thread_sync();
#pragma unroll 1
    for (uint32_t turn = 0; turn < num_rows; turn += 2 * kRows, place ^= 1) {
      // Gate's warps finish the first rows of a turn, Up's the others.
      const uint32_t own = mine.up ? kRows : 0, others = mine.up ? 0 : kRows;
      if (turn + others < num_rows) {
        leave_turn<kTile>(from + turn + others, smem.exchange[place] + others, mine.in_tile);
      }
      ptx::barrier_sync(kExchangeBarrier, TurnsOf<kTile>::kUsedRows);
      if (turn + own < num_rows) {
        finish_turn<kTile>(params, rows, begin + turn + own, mine, factors, from + turn + own,
                           smem.exchange[place] + own);
      }
    }
    ptx::tcgen05_fence_before_thread_sync();
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&smem.acc_empty[acc.stage]);
  }
}

}  // namespace dualgemm::cuda::blackwell
