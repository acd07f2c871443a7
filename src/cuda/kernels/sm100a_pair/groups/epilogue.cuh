// From the accumulators to D. Part of dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/kernels/sm100a_pair/epilogue.cuh"

namespace dualgemm::cuda::sm100a_pair_groups {

// What scales the sums of this thread's row.
DUALGEMM_DEVICE blackwell::RowScales row_scales(const Params& params, uint32_t expert,
                                                const OutputRows& rows, uint32_t row) {
  const Alphas alphas = alphas_of(params, expert);
  return {alphas.gate, alphas.up, row < rows.end ? row_scale_of(params, rows.batch, row) : 1.0f};
}

// Zeros for the rows of D's last scale tile that do not exist, in columns n_begin .. n_end - 1: by
// the warp that has the expert's last row among 32 from `first_row` on.
DUALGEMM_DEVICE void clear_scales(const Params& params, const OutputRows& rows, uint32_t first_row,
                                  uint32_t n_begin, uint32_t n_end) {
  for (int product = 0; product < (params.combine.side_by_side ? 2 : 1); ++product) {
    const Columns columns = columns_of(params, product);
#pragma unroll 1
    for (uint32_t col = n_begin; col < n_end; col += kBlock)
      clear_scales_below(params, rows, first_row, 32, block_of(params, columns, col));
  }
}

// Runs on: the warps of the epilogue; `index` counts them.   Waits: acc_gate, acc_up.   Arrives:
// sums_read of both CTAs, gate_free and up_free of the leader.
template <Config kCfg>
DUALGEMM_DEVICE void finish_tiles(const Params& params, sm100a_pair::SharedStorage<kCfg>& smem,
                                  const Turns& turns, uint32_t tmem_base, uint32_t index) {
  using B = Budget<kCfg>;
  const uint32_t first_lane = ptx::warp_index() % 4 * 32;
  const uint32_t rank = ptx::cluster_cta_rank();
  sm100a_pair::Share share;
  share.first_col = index / 4 * B::kGroupCols;
  const uint32_t end_col = share.first_col + B::kGroupCols;
  share.tmem = tmem_base + (first_lane << 16);  // the lane field: this warp's own
#pragma unroll 1
  for (Tiles tiles(params, turns);; tiles.advance()) {
    tiles.ask_for_next();
    const uint32_t expert = tiles.rows().expert, n_begin = tiles.n_begin();
    const OutputRows rows = rows_of_group(params, tiles.rows());
    share.first_row = tiles.rows().begin + rank * kCtaRows + first_lane;
    share.row = share.first_row + threadIdx.x % 32;
    share.scales = row_scales(params, expert, rows, share.row);
    if constexpr (kCfg.output == OutputType::kE2M1) {
      clear_scales(params, rows, share.first_row, n_begin + share.first_col, n_begin + end_col);
      __syncwarp();
    }
    // No columns for a warp that has no row.
    share.end = share.first_row < rows.end ? min(end_col, params.n - n_begin) : 0;
    sm100a_pair::wait_for_sums(&smem.acc_gate, tiles.turns().parity());
    sm100a_pair::finish_turn(smem, share, tiles.turns(), [&](uint32_t col, auto& g, auto& u) {
      blackwell::finish_columns<kCfg.output>(params, share.scales, expert, rows, share.row,
                                             n_begin + col, g, u);
    });
    if (tiles.is_last()) return;
  }
}

}  // namespace dualgemm::cuda::sm100a_pair_groups
