// From complete sums to D. mma leaves a warp's sums by columns: lane 4r + q has rows 2q and 2q + 1 of
// a group of A's rows in column r of a unit. By way of the shared memory of the stages each lane
// gets eight neighbours of one row, half a block of 16: stores of 16 bytes, and an eighth of the
// instructions for what an output needs besides arithmetic.
#pragma once

#include <cstdint>

#include "cuda/device/combine.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/common/store_nvfp4.cuh"
#include "cuda/kernels/sm120a/multiply.cuh"

namespace dualgemm::cuda::sm120a {

// A group's sums of a warp: [unit, Gate or Up, parity of the row] of kSumStride floats, one a lane.
// What a warp reads at a time, of two groups, then lies in 32 banks.
DUALGEMM_DEVICE uint32_t sum_place(uint32_t unit, uint32_t matrix, uint32_t parity) {
  return (4 * unit + 2 * matrix + parity) * kSumStride;
}

template <Config kCfg>
DUALGEMM_DEVICE void put_sums(const Sums<kCfg>& sums, int first, float* items) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < round_groups_of(kCfg); ++i) {
#pragma unroll
    for (int unit = 0; unit < kWarpUnits; ++unit) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        items[i * kItemFloats + sum_place(unit, j / 2, j % 2) + lane] = sums[unit][first + i][j];
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
                                      uint32_t first_row, uint32_t rows_of_run, int product,
                                      const float (&outputs)[8]) {
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
  clear_scales_below(params, rows, first_row, rows_of_run, block);
}

// The sums of `count` groups from group `first` on, two at a time: lane 2r + h has columns 8h ..
// 8h+7 of row r of both.
__device__ __noinline__ void finish_groups(const Params& params, Place place, const float* items,
                                           uint32_t first, uint32_t count) {
  const uint32_t lane = threadIdx.x % 32, unit = lane % 2, row = lane / 2;
  const uint32_t group = min(row / kGroupRows, count - 1), in_group = row % kGroupRows;
  const uint32_t rows_at_a_time = min(count, 2u) * kGroupRows;
#pragma unroll 1
  for (uint32_t i = 0; i < count; i += 2) {
    const float* const from =
        items + (i + group) * kItemFloats + sum_place(unit, 0, in_group % 2) + in_group / 2;
    const uint32_t first_row = place.m_begin + (first + i) * kGroupRows;
    const Run run{row < rows_at_a_time ? first_row + row : place.m_end,
                  place.first_col + place.warp_n * kWarpCols + unit * kUnitCols};
    float g[8], u[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      g[j] = from[4 * j];
      u[j] = from[2 * kSumStride + 4 * j];
    }
    apply_factors(params, place, run, g, u);
    for_outputs(params, g, u, [&](int product, float(&outputs)[8]) {
      __syncwarp();
      switch (params.output) {
        case OutputType::kF16:
          return store_run<OutputType::kF16>(params, place, run, product, outputs);
        case OutputType::kBF16:
          return store_run<OutputType::kBF16>(params, place, run, product, outputs);
        case OutputType::kF32:
          return store_run<OutputType::kF32>(params, place, run, product, outputs);
        case OutputType::kE2M1:
          return store_half_block(params, place, run, first_row, rows_at_a_time, product, outputs);
      }
    });
    __syncwarp();
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void finish(const Params& params, const Place& place, const Sums<kCfg>& sums,
                            uint8_t* smem) {
  if (place.m_begin >= place.m_end) return;
  constexpr int kRound = round_groups_of(kCfg);
  const uint32_t warp = place.warp_m * kWarpsN + place.warp_n;
  float* const items = reinterpret_cast<float*>(smem) + warp * kRound * kItemFloats;
#pragma unroll
  for (int first = 0; first < kCfg.groups; first += kRound) {
    __syncwarp();  // the items before have been read
    put_sums<kCfg>(sums, first, items);
    __syncwarp();
    finish_groups(params, place, items, first, kRound);
  }
}

}  // namespace dualgemm::cuda::sm120a
