// From complete sums to D. mma leaves a warp's sums by columns: lane 4r + q has rows 2q and 2q + 1
// of a group of A's rows in column r of a unit. By way of the shared memory of the stages each lane
// gets eight neighbours of one row, and a warp four rows of all columns of the tile: stores of 16
// bytes that fill whole lines, and an eighth of the instructions for what an output needs besides
// arithmetic.
#pragma once

#include <cstdint>

#include "cuda/device/combine.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/common/store_nvfp4.cuh"
#include "cuda/kernels/sm120a/multiply.cuh"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda::sm120a {

// Warps with the same rows have their sums beside each other: [warp][group of the round][unit, Gate
// or Up, parity of the row] of kSumStride floats, one a lane. What a warp reads at a time then lies
// in 32 banks.
template <Config kCfg>
DUALGEMM_DEVICE uint32_t sums_of_warp(uint32_t warp_n) {
  return warp_n * warp_floats_of(kCfg) + warp_n % 2 * 2 + warp_n / 2 * 8;
}
DUALGEMM_DEVICE uint32_t sum_place(uint32_t unit, uint32_t matrix, uint32_t parity) {
  return (4 * unit + 2 * matrix + parity) * kSumStride;
}

template <Config kCfg>
DUALGEMM_DEVICE void put_sums(const Sums<kCfg>& sums, int first, float* to) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < round_groups_of(kCfg); ++i) {
#pragma unroll
    for (int unit = 0; unit < kWarpUnits; ++unit) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        to[i * kItemFloats + sum_place(unit, j / 2, j % 2) + lane] = sums[unit][first + i][j];
    }
  }
}

// Eight neighbours of a row of D.
struct Run {
  uint32_t row, col;  // the row may not exist
};

DUALGEMM_DEVICE void apply_factors(const Params& params, const Place& place, const Run& run,
                                   float (&g)[8], float (&u)[8]) {
  const Alphas alphas = alphas_of(params, place.batch);
  const float row_scale = row_scale_of(params, place.batch, min(run.row, place.m_end - 1));
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    g[i] = g[i] * alphas.gate * row_scale;
    u[i] = u[i] * alphas.up * row_scale;
  }
  add_row_bias(params.bias, place.batch * params.bias.stride + run.col, run.col, params.n, g, u);
}

template <OutputType kType>
DUALGEMM_DEVICE void store_run(const Params& params, const Place& place, const Run& run,
                               int product, float (&outputs)[8]) {
  const Columns columns = columns_of(params, product);
  if (run.row >= place.m_end || run.col >= columns.end) return;
  uint8_t* const to = params.d + place.batch * params.d_batch_bytes + run.row * params.d_row_bytes +
                      static_cast<uint64_t>(run.col + columns.shift) * bytes_of(kType);
  const int valid = static_cast<int>(min(columns.end - run.col, 8u));
  if (params.combine.residual != nullptr) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i < valid)
        outputs[i] = with_residual(params, kType, to + i * bytes_of(kType), outputs[i]);
    }
  }
  store_row<kType, 8>(to, outputs, valid);
}

// To D, which is kE2M1. By a warp: two lanes have a block.
DUALGEMM_DEVICE void store_half_block(const Params& params, const Place& place, const Run& run,
                                      uint32_t first_row, int product, const float (&outputs)[8]) {
  OutputRows rows = rows_of_batch(params, place.batch);
  if (params.groups.table != nullptr)
    rows = rows_of_group(params, tile_of(params.groups, place.group_tile));
  const uint32_t half = run.col / 8 % 2;
  const uint32_t block = block_of(params, columns_of(params, product), run.col - 8 * half);
  uint32_t amax = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) amax = max(amax, magnitude_bits(outputs[i]));
  amax = max(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, 1));
  const BlockEncoder encoder = encoder_of(amax, params.nvfp4.quantize);
  const uint32_t word = encode_row(encoder, outputs);
  if (run.row < place.m_end && block < params.nvfp4.blocks) {
    store_codes(params, rows.batch, run.row, block, half, word);
    if (half == 0)
      store_scale(params, rows.batch, run.row + rows.scale_shift, block, encoder.scale);
  }
  const uint32_t lane = threadIdx.x % 32;  // of the eight that have this block
  clear_scales_below(params, rows, first_row, 4, block, lane / 8 * 2 + lane % 2, 8);
}

// Four rows, all columns: lane 8r + c has columns 8c .. 8c+7 of row r. `from`: the lane's sums.
__device__ __noinline__ void finish_four_rows(const Params& params, Place place, const float* from,
                                              uint32_t first_row) {
  const uint32_t lane = threadIdx.x % 32;
  const Run run{first_row + lane / 8, place.first_col + lane % 8 * kUnitCols};
  float g[8], u[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    g[j] = from[4 * j];
    u[j] = from[2 * kSumStride + 4 * j];
  }
  apply_factors(params, place, run, g, u);
  for_outputs(params, g, u, [&](int product, float(&outputs)[8]) {
    switch (params.output) {
      case OutputType::kF16:
        return store_run<OutputType::kF16>(params, place, run, product, outputs);
      case OutputType::kBF16:
        return store_run<OutputType::kBF16>(params, place, run, product, outputs);
      case OutputType::kF32:
        return store_run<OutputType::kF32>(params, place, run, product, outputs);
      case OutputType::kE2M1:
        return store_half_block(params, place, run, first_row, product, outputs);
    }
  });
}

// The warps that have the same rows share the sums of each round among them.
template <Config kCfg>
DUALGEMM_DEVICE void sync_same_rows(const Place& place) {
  if constexpr (kCfg.warps_m == 1) {
    __syncthreads();
  } else {
    ptx::barrier_sync(1 + place.warp_m, 32 * kWarpsN);
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void finish(const Params& params, const Place& place, const Sums<kCfg>& sums,
                            uint8_t* smem) {
  if (place.m_begin >= place.m_end) return;
  constexpr int kRound = round_groups_of(kCfg);
  float* const all =
      reinterpret_cast<float*>(smem) + place.warp_m * (kWarpsN * warp_floats_of(kCfg));
  const uint32_t lane = threadIdx.x % 32, column_warp = lane % 8 / kWarpUnits;
#pragma unroll
  for (int first = 0; first < kCfg.groups; first += kRound) {
    if (first > 0) {
      __syncwarp();
      sync_same_rows<kCfg>(place);  // the sums before have been read
    }
    put_sums<kCfg>(sums, first, all + sums_of_warp<kCfg>(place.warp_n));
    sync_same_rows<kCfg>(place);
#pragma unroll 1
    for (uint32_t part = place.warp_n; part < 2 * kRound; part += kWarpsN) {
      const uint32_t row = part % 2 * 4 + lane / 8, group = part / 2;
      const float* const from = all + sums_of_warp<kCfg>(column_warp) + group * kItemFloats +
                                sum_place(lane % kWarpUnits, 0, row % 2) + row / 2;
      finish_four_rows(params, place, from,
                       place.m_begin + (first + group) * kGroupRows + part % 2 * 4);
    }
  }
}

}  // namespace dualgemm::cuda::sm120a
