// From the accumulators of a cluster to D. Part of dual_gemm.cuh, which has the tables.
//
// A lane has one column of Gate or of Up, for all rows of D and the CTA's part of k. Every warp
// leaves its sums in shared memory; rows are dealt out in turns of 8 to the CTAs of the cluster,
// and in each to Gate's and Up's warps of both groups. Who has a turn adds what all CTAs have left
// for it, in the order of their ranks: the bits depend on no schedule.
#pragma once

#include "cuda/kernels/blackwell/finish_rows.cuh"
#include "cuda/ptx/tcgen05_single.cuh"

namespace dualgemm::cuda::sm100a_w4a16 {

using blackwell::ColumnFactors;

constexpr uint32_t kSumsBarrier = 1;

// What a warp has: lanes of Gate (product 0) or of Up, that is, 32 columns of the tile.
struct WarpColumns {
  uint32_t group, product, in_tile;  // in_tile: this lane's column
};

DUALGEMM_DEVICE WarpColumns columns_of_warp(uint32_t warp) {
  const uint32_t quarter = warp % kGroupWarps;
  return {warp / kGroupWarps, quarter / 2, quarter % 2 * 32 + threadIdx.x % 32};
}

// Turns of rows that the tile has.
template <Config kCfg>
DUALGEMM_DEVICE uint32_t turns_of(const Params& params, const Tile& tile) {
  const uint32_t rows = min(params.m - tile.m_begin, static_cast<uint32_t>(kCfg.tile_m));
  return (rows + kTurnRows - 1) / kTurnRows;
}

// What needs no sums.
template <Config kCfg>
DUALGEMM_DEVICE ColumnFactors begin_columns(const Params& params, const Tile& tile, uint32_t warp) {
  const uint32_t col = tile.n_begin + columns_of_warp(warp).in_tile;
  if (params.output == OutputType::kE2M1 && warp < 2 && tile.rank == 0) {
    blackwell::clear_scales(params, rows_of_batch(params, tile.batch), tile.m_begin, kCfg.tile_m,
                            col - threadIdx.x % 32);
  }
  return blackwell::factors_of(params, tile.batch, col);
}

// Runs on: warps 0 .. kWorkWarps-1.   Waits: acc_full.   Arrives: nothing; a barrier of the
// cluster, or of these warps, says that the sums are there.
template <Config kCfg>
DUALGEMM_DEVICE void leave_sums(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile,
                                uint32_t tmem_base, uint32_t warp) {
  const WarpColumns mine = columns_of_warp(warp);
  const uint32_t acc = tmem_base + (32 * (warp % kGroupWarps) << 16);  // its own quarter
  auto& sums = *reinterpret_cast<Sums<kCfg>*>(smem.stages);
  ptx::mbarrier_wait_parity(&smem.acc_full[0], 0);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
#pragma unroll 1
  for (uint32_t turn = mine.group; turn < turns_of<kCfg>(params, tile); turn += kDecoders) {
    float sum[kTurnRows];
    ptx::tcgen05_ld_32x32b(acc + turn * kTurnRows, sum);
#pragma unroll
    for (uint32_t i = 0; i < kTurnRows; ++i)
      sums[mine.product][turn * kTurnRows + i][mine.in_tile] = sum[i];
  }
}

// Runs on: warps 0 .. kWorkWarps-1, behind that barrier.
template <Config kCfg>
DUALGEMM_DEVICE void store_sums(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile,
                                const ColumnFactors& factors, uint32_t warp) {
  const WarpColumns mine = columns_of_warp(warp);
  auto& sums = *reinterpret_cast<Sums<kCfg>*>(smem.stages);
  const uint32_t first = tile.rank + params.split * (mine.product + 2 * mine.group);
#pragma unroll 1
  for (uint32_t turn = first; turn < turns_of<kCfg>(params, tile);
       turn += params.split * 2 * kDecoders) {
    const uint32_t row = turn * kTurnRows;
    float g[kTurnRows] = {}, u[kTurnRows] = {};
#pragma unroll 1
    for (uint32_t rank = 0; rank < params.split; ++rank) {
      const uint32_t gate = ptx::mapa(&sums[0][row][mine.in_tile], rank);
      const uint32_t up = ptx::mapa(&sums[1][row][mine.in_tile], rank);
#pragma unroll
      for (uint32_t i = 0; i < kTurnRows; ++i) {
        const float more_g = ptx::ld_shared_cluster(gate + i * sizeof sums[0][0]);
        const float more_u = ptx::ld_shared_cluster(up + i * sizeof sums[0][0]);
        g[i] = rank == 0 ? more_g : __fadd_rn(g[i], more_g);
        u[i] = rank == 0 ? more_u : __fadd_rn(u[i], more_u);
      }
    }
    blackwell::finish_rows(params, rows_of_batch(params, tile.batch), tile.m_begin + row,
                           tile.n_begin + mine.in_tile, factors, g, u);
  }
}

}  // namespace dualgemm::cuda::sm100a_w4a16
