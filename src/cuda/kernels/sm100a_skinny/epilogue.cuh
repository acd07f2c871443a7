// From the accumulator to D. Part of dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/kernels/blackwell/turns.cuh"

namespace dualgemm::cuda::sm100a_skinny {

// Runs on: warps that have lanes.   Waits: acc_full.   Arrives: nothing; teardown's CTA barrier
// says that the accumulator is read.
template <Config kCfg>
DUALGEMM_DEVICE void epilogue(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile,
                              uint32_t tmem_base, uint32_t warp) {
  constexpr blackwell::FinishedTile kTile = finished_tile(kCfg);
  constexpr uint32_t kRows = Budget<kCfg>::Turns::kTurnRows;
  const blackwell::WarpColumns mine = blackwell::columns_of_warp<kTile>(tile.n_begin, warp);
  const blackwell::ColumnFactors factors = blackwell::factors_of(params, tile.batch, mine.col);
  const OutputRows rows = rows_of_batch(params, tile.batch);
  const uint32_t acc = tmem_base + Budget<kCfg>::kAccCol + (32 * warp << 16);  // its own quarter
  auto* const exchange = reinterpret_cast<float(*)[kCfg.tile_n]>(smem.stages);

  if (params.output == OutputType::kE2M1 && !mine.up)
    blackwell::clear_scales(params, rows, 0, kCfg.tile_m, mine.col - threadIdx.x % 32);
  ptx::mbarrier_wait_parity(&smem.acc_full[0], 0);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
#pragma unroll 1
  for (uint32_t row = mine.up ? 0 : kRows; row < params.m; row += 2 * kRows)
    blackwell::leave_turn<kTile>(acc + row, exchange + row, mine.in_tile);
  ptx::barrier_sync(blackwell::kExchangeBarrier, Budget<kCfg>::kUsedRows);
#pragma unroll 1
  for (uint32_t row = mine.up ? kRows : 0; row < params.m; row += 2 * kRows)
    blackwell::finish_turn<kTile>(params, rows, row, mine, factors, acc + row, exchange + row);
}

}  // namespace dualgemm::cuda::sm100a_skinny
