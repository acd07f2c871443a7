// From the accumulator to D. Part of dual_gemm.cuh, which has the tables.
//
// A lane has one column of Gate or of Up, for all rows of D. Rows are dealt out in groups, to
// Gate's warps and Up's warps in turn; a warp leaves the numbers of the other's groups in shared
// memory, and finishes its own with what it finds there. A warp stores 32 neighbouring columns of a
// row.
#pragma once

#include "cuda/kernels/sm100a_skinny/finish_rows.cuh"
#include "cuda/ptx/tcgen05_single.cuh"

namespace dualgemm::cuda::sm100a_skinny {

constexpr uint32_t kExchangeBarrier = 1;

// Rows that a warp takes at a time: 8 where more would leave Up's warps without any.
template <Config kCfg>
inline constexpr uint32_t kTurnRows = kCfg.tile_m >= 64 ? 16 : 8;

// What a warp of the epilogue has: 32 columns of one of the two products.
struct WarpColumns {
  bool up;
  uint32_t in_tile;  // of this lane
  uint32_t col;      // the same in D
};

template <Config kCfg>
DUALGEMM_DEVICE WarpColumns columns_of_warp(const Tile& tile, uint32_t warp) {
  const bool up = warp >= Budget<kCfg>::kProductWarps;
  const uint32_t lane = 32 * warp + threadIdx.x % 32;  // of TMEM
  const uint32_t in_tile = up ? lane - kCfg.tile_n : lane;
  return {up, in_tile, tile.n_begin + in_tile};
}

// Runs on: warps that have lanes.   Waits: acc_full.   Arrives: nothing; teardown's CTA barrier
// says that the accumulator is read.
template <Config kCfg>
DUALGEMM_DEVICE void epilogue(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile,
                              uint32_t tmem_base, uint32_t warp) {
  constexpr uint32_t kRows = kTurnRows<kCfg>;
  const WarpColumns mine = columns_of_warp<kCfg>(tile, warp);
  const ColumnFactors factors = factors_of(params, tile.batch, mine.col);
  const uint32_t acc = tmem_base + Budget<kCfg>::kAccCol + (32 * warp << 16);  // its own quarter
  auto& exchange = *reinterpret_cast<float(*)[kCfg.tile_m][kCfg.tile_n]>(smem.stages);

  if (params.output == OutputType::kE2M1 && !mine.up)
    clear_scales(params, tile.batch, 0, kMaxRows, mine.col - threadIdx.x % 32);
  ptx::mbarrier_wait_parity(&smem.acc_full, 0);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
#pragma unroll 1
  for (uint32_t row = mine.up ? 0 : kRows; row < params.m; row += 2 * kRows) {
    float sums[kRows];
    ptx::tcgen05_ld_32x32b(acc + row, sums);
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) exchange[row + i][mine.in_tile] = sums[i];
  }
  ptx::barrier_sync(kExchangeBarrier, Budget<kCfg>::kUsedRows);
#pragma unroll 1
  for (uint32_t row = mine.up ? kRows : 0; row < params.m; row += 2 * kRows) {
    float g[kRows], u[kRows];
    ptx::tcgen05_ld_32x32b(acc + row, g);
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) u[i] = exchange[row + i][mine.in_tile];
    if (mine.up) {
#pragma unroll
      for (uint32_t i = 0; i < kRows; ++i) {
        const float gate = u[i];
        u[i] = g[i], g[i] = gate;
      }
    }
    finish_rows(params, tile.batch, row, mine.col, factors, g, u);
  }
}

}  // namespace dualgemm::cuda::sm100a_skinny
