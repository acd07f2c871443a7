// From the accumulator to D. Part of dual_gemm.cuh, which has the tables.
//
// A lane has one column of Gate or of Up, for all rows of the tile. Rows are dealt out in turns, to
// Gate's warps and Up's warps; a warp leaves the numbers of the other's turns in shared memory, and
// finishes its own with what it finds there. A warp stores 32 neighbouring columns of a row.
#pragma once

#include "cuda/device/activation.cuh"
#include "cuda/device/combine.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/common/store_nvfp4.cuh"
#include "cuda/ptx/tcgen05_single.cuh"

namespace dualgemm::cuda::sm100a_skinny {

constexpr uint32_t kExchangeBarrier = 1;

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

// What the sums of one column are multiplied with, and what is added. Read while MMAs run.
struct ColumnFactors {
  Alphas alphas;
  float bias_gate, bias_up;
};

DUALGEMM_DEVICE ColumnFactors factors_of(const Params& params, uint32_t batch, uint32_t col) {
  // x + -0 is x, with its sign.
  ColumnFactors factors{alphas_of(params, batch), -0.0f, -0.0f};
  if (params.bias.gate != nullptr && col < params.n) {
    const int64_t index = batch * params.bias.stride + col;
    factors.bias_gate = load_bias(params.bias.gate, params.bias.bf16, index);
    factors.bias_up = load_bias(params.bias.up, params.bias.bf16, index);
  }
  return factors;
}

// D as NVFP4: row `row`, which exists, of the block whose 16 columns these 16 lanes have. The block
// need not exist.
DUALGEMM_DEVICE void store_block(const Params& params, const OutputRows& rows, uint32_t row,
                                 uint32_t block, float x) {
  uint32_t amax = magnitude_bits(x);
#pragma unroll
  for (int distance = 1; distance < kBlock; distance *= 2)
    amax = max(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, distance));
  const BlockEncoder encoder = encoder_of(amax, params.nvfp4.quantize);
  const uint32_t lane = threadIdx.x % kBlock;
  uint32_t word = encode_value(encoder, x) << (4 * (lane % 8));
#pragma unroll
  for (int distance = 1; distance < 8; distance *= 2)
    word |= __shfl_xor_sync(0xFFFFFFFFu, word, distance);
  if (block < params.nvfp4.blocks) {
    if (lane % 8 == 0) store_codes(params, rows.batch, row, block, lane / 8, word);
    if (lane == 1) store_scale(params, rows.batch, row + rows.scale_shift, block, encoder.scale);
  }
}

// Zeros for the rows of D's scale tile that do not exist, below a tile that begins in row
// `m_begin`.
template <Config kCfg>
DUALGEMM_DEVICE void clear_scales(const Params& params, const OutputRows& rows, uint32_t m_begin,
                                  uint32_t first_col) {
  for (int product = 0; product < (params.combine.side_by_side ? 2 : 1); ++product) {
    const Columns columns = columns_of(params, product);
#pragma unroll 1
    for (uint32_t col = first_col; col < first_col + 32; col += kBlock)
      clear_scales_below(params, rows, m_begin, kCfg.tile_m, block_of(params, columns, col));
  }
}

// Of one product `count` rows from `first` on, of which those below rows.end exist.
template <int kRows>
DUALGEMM_DEVICE void store_rows(const Params& params, const OutputRows& rows, uint32_t first,
                                uint32_t col, int product, const float (&outputs)[kRows]) {
  const Columns columns = columns_of(params, product);
  if (params.output == OutputType::kE2M1) {
    const uint32_t block = block_of(params, columns, col);
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      if (first + i < rows.end) store_block(params, rows, first + i, block, outputs[i]);
    }
    return;
  }
  if (col >= columns.end) return;
  uint8_t* to = params.d + rows.batch * params.d_batch_bytes + first * params.d_row_bytes +
                static_cast<uint64_t>(col + columns.shift) * bytes_of(params.output);
#pragma unroll
  for (uint32_t i = 0; i < kRows; ++i, to += params.d_row_bytes) {
    if (first + i < rows.end)
      store_element(params.output, to, with_residual(params, params.output, to, outputs[i]));
  }
}

// From sums to D. g: Gate's in, the first product's outputs out; u: Up's.
template <int kRows>
DUALGEMM_DEVICE void finish_rows(const Params& params, const OutputRows& rows, uint32_t first,
                                 uint32_t col, const ColumnFactors& factors, float (&g)[kRows],
                                 float (&u)[kRows]) {
#pragma unroll
  for (uint32_t i = 0; i < kRows; ++i) {
    const float row_scale =
        first + i < rows.end ? row_scale_of(params, rows.batch, first + i) : 1.0f;
    g[i] = __fadd_rn(g[i] * factors.alphas.gate * row_scale, factors.bias_gate);
    u[i] = __fadd_rn(u[i] * factors.alphas.up * row_scale, factors.bias_up);
  }
  if (!params.combine.side_by_side) activate_all_silu_first(params.act, g, u);
#pragma unroll 1
  for (int product = 0;; ++product) {
    store_rows(params, rows, first, col, product, g);
    __syncwarp();
    if (!params.combine.side_by_side || product == 1) break;
#pragma unroll
    for (int i = 0; i < kRows; ++i) g[i] = u[i];
  }
}

// What the warp's own product has of a turn that the other one finishes, at `acc`, to its column of
// rows in shared memory.
template <Config kCfg>
DUALGEMM_DEVICE void leave_turn(uint32_t acc, float (*to)[kCfg.tile_n], uint32_t column) {
  float sums[Budget<kCfg>::kTurnRows];
  ptx::tcgen05_ld_32x32b(acc, sums);
#pragma unroll
  for (int i = 0; i < Budget<kCfg>::kTurnRows; ++i) to[i][column] = sums[i];
}

// A turn of the warp's own, from row `first` of D on: one product is at `acc`, the other one in
// shared memory.
template <Config kCfg>
DUALGEMM_DEVICE void finish_turn(const Params& params, const OutputRows& rows, uint32_t first,
                                 const WarpColumns& mine, const ColumnFactors& factors,
                                 uint32_t acc, const float (*from)[kCfg.tile_n]) {
  constexpr int kRows = Budget<kCfg>::kTurnRows;
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

// Runs on: warps that have lanes.   Waits: acc_full.   Arrives: nothing; teardown's CTA barrier
// says that the accumulator is read.
template <Config kCfg>
DUALGEMM_DEVICE void epilogue(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile,
                              uint32_t tmem_base, uint32_t warp) {
  constexpr uint32_t kRows = Budget<kCfg>::kTurnRows;
  const WarpColumns mine = columns_of_warp<kCfg>(tile, warp);
  const ColumnFactors factors = factors_of(params, tile.batch, mine.col);
  const OutputRows rows = rows_of_batch(params, tile.batch);
  const uint32_t acc = tmem_base + Budget<kCfg>::kAccCol + (32 * warp << 16);  // its own quarter
  auto* const exchange = reinterpret_cast<float(*)[kCfg.tile_n]>(smem.stages);

  if (params.output == OutputType::kE2M1 && !mine.up)
    clear_scales<kCfg>(params, rows, 0, mine.col - threadIdx.x % 32);
  ptx::mbarrier_wait_parity(&smem.acc_full[0], 0);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
#pragma unroll 1
  for (uint32_t row = mine.up ? 0 : kRows; row < params.m; row += 2 * kRows)
    leave_turn<kCfg>(acc + row, exchange + row, mine.in_tile);
  ptx::barrier_sync(kExchangeBarrier, Budget<kCfg>::kUsedRows);
#pragma unroll 1
  for (uint32_t row = mine.up ? kRows : 0; row < params.m; row += 2 * kRows)
    finish_turn<kCfg>(params, rows, row, mine, factors, acc + row, exchange + row);
}

}  // namespace dualgemm::cuda::sm100a_skinny
