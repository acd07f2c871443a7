// The fused dual GEMM for any GPU of compute capability 8.0 or later: mma.sync on operands that are
// decoded in registers. Simple where the kernels for one architecture are quick: no shared memory
// for operands, no asynchronous copies.
//
// A warp's 16 rows of mma are 8 rows of gate and the same 8 of up, its 8 columns are rows of a, so
// that both sums of an output are in one thread. kWarpsK warps divide the blocks of k of a tile
// into contiguous parts; their sums are added in the order of k through shared memory. All of this
// is the same for every M: a row of d does not depend on the other rows, nor on the tile.
#pragma once

#include <cstdint>

#include "cuda/device/activation.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/sm80/config.hpp"
#include "cuda/kernels/sm80/fragments.cuh"
#include "cuda/kernels/sm80/params.hpp"

namespace dualgemm::cuda::sm80 {

// Sums of one warp: [block of 8 rows of a][mma's d].
template <Config kCfg>
using Accumulators = float[kCfg.token_blocks][4];

template <Config kCfg>
struct SharedStorage {
  // [part of k][warp along n][block of rows][register][lane]
  float sums[kWarpsK][kCfg.warps_n][kCfg.token_blocks][4][32];
};

// Where a warp works.
struct Place {
  uint32_t m_begin, col, batch;  // first row of the tile; this thread's row of gate and up
  uint32_t warp_n, warp_k;
  uint32_t row_in_block, quarter;  // lane / 4: row of 8; lane % 4: part of the block of k
};

template <Config kCfg>
DUALGEMM_DEVICE Place place_of_thread(const Params& params) {
  const uint32_t column = blockIdx.x / params.tiles_m;
  const uint32_t batch = column / params.tiles_n;
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Place place;
  place.batch = batch;
  place.m_begin = (blockIdx.x - column * params.tiles_m) * tile_m_of(kCfg);
  place.warp_n = warp % kCfg.warps_n;
  place.warp_k = warp / kCfg.warps_n;
  place.row_in_block = lane / 4;
  place.quarter = lane % 4;
  place.col = (column - batch * params.tiles_n) * tile_n_of(kCfg) + place.warp_n * kWarpCols +
              place.row_in_block;
  return place;
}

template <Config kCfg>
DUALGEMM_DEVICE void load_a(const Params& params, const Place& place, uint32_t block, uint32_t k16,
                            Steps& steps) {
  const RowCursor cursor = row_cursor(
      params.a, place.batch, place.m_begin + block * kTokenBlock + place.row_in_block, params.m);
  if constexpr (kCfg.a_type == AType::kE2M1) {
    decode<false>(load_packed(cursor, k16, params.k16, params.aligned16), steps);
  } else {
    load_halves(cursor, k16, params.k16, params.aligned16, steps);
  }
}

// This warp's part of the blocks of k.
template <Config kCfg>
DUALGEMM_DEVICE void multiply(const Params& params, const Place& place, Accumulators<kCfg>& sums) {
  constexpr bool kBf16 = kCfg.a_type == AType::kBF16;
  const uint32_t blocks = (params.k16 + kBlockK16 - 1) / kBlockK16;
  const uint32_t begin = blocks * place.warp_k / kWarpsK;
  const uint32_t end = blocks * (place.warp_k + 1) / kWarpsK;
  const RowCursor gate = row_cursor(params.gate, place.batch, place.col, params.n);
  const RowCursor up = row_cursor(params.up, place.batch, place.col, params.n);
  const auto load = [&](const RowCursor& cursor, uint32_t block) {
    return load_packed(cursor, block * kBlockK16 + 2 * place.quarter, block < end ? params.k16 : 0,
                       params.aligned16);
  };
  Packed next_gate = load(gate, begin), next_up = load(up, begin);
#pragma unroll 1
  for (uint32_t block = begin; block < end; ++block) {
    Steps gate_steps, up_steps;
    decode<kBf16>(next_gate, gate_steps);
    decode<kBf16>(next_up, up_steps);
    next_gate = load(gate, block + 1);
    next_up = load(up, block + 1);
#pragma unroll
    for (int t = 0; t < kCfg.token_blocks; ++t) {
      Steps a_steps;
      load_a<kCfg>(params, place, t, block * kBlockK16 + 2 * place.quarter, a_steps);
      __syncwarp();  // the loads have branches, mma needs the whole warp
#pragma unroll
      for (int step = 0; step < 8; ++step) {
        const uint32_t weights[4] = {gate_steps[step][0], up_steps[step][0], gate_steps[step][1],
                                     up_steps[step][1]};
        ptx::mma_m16n8k16<kBf16>(sums[t], weights, a_steps[step]);
      }
    }
  }
}

DUALGEMM_DEVICE void store_output(const Params& params, uint32_t batch, uint32_t row, uint32_t col,
                                  float value) {
  const float values[1] = {value};
  uint8_t* const to = params.d + batch * params.d_batch_bytes + row * params.d_row_bytes +
                      static_cast<uint64_t>(col) * bytes_of(params.output);
  if (params.output == OutputType::kF32) {
    *reinterpret_cast<float*>(to) = values[0];
  } else {
    const uint32_t pair = params.output == OutputType::kF16
                              ? pack_pair<OutputType::kF16>(value, 0)
                              : pack_pair<OutputType::kBF16>(value, 0);
    *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(pair);
  }
}

// The two outputs of one thread in one block of rows of a.
template <Config kCfg>
DUALGEMM_DEVICE void finish(const Params& params, const Place& place, uint32_t block,
                            const float (&sums)[4]) {
  constexpr bool kBf16 = kCfg.a_type == AType::kBF16;
  constexpr float kUnit =
      kDecodedUnit<kBf16> * (kCfg.a_type == AType::kE2M1 ? kDecodedUnit<false> : 1.0f);
  if (place.col >= params.n) return;
  const float alpha_gate = params.alpha_gate_per_batch == nullptr
                               ? params.alpha_gate
                               : params.alpha_gate_per_batch[place.batch];
  const float alpha_up = params.alpha_up_per_batch == nullptr
                             ? params.alpha_up
                             : params.alpha_up_per_batch[place.batch];
  float g[2], u[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t row = place.m_begin + block * kTokenBlock + 2 * place.quarter + i;
    float row_scale = 1.0f;
    if (params.a_row_scale != nullptr && row < params.m)
      row_scale = params.a_row_scale[static_cast<uint64_t>(place.batch) * params.m + row];
    g[i] = sums[i] * kUnit * alpha_gate * row_scale;
    u[i] = sums[2 + i] * kUnit * alpha_up * row_scale;
  }
  activate_all(params.act, g, u);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t row = place.m_begin + block * kTokenBlock + 2 * place.quarter + i;
    if (row < params.m) store_output(params, place.batch, row, place.col, g[i]);
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  __shared__ SharedStorage<kCfg> smem;
  const Place place = place_of_thread<kCfg>(params);
  const uint32_t lane = threadIdx.x % 32;
  Accumulators<kCfg> sums{};
  multiply<kCfg>(params, place, sums);
#pragma unroll
  for (int t = 0; t < kCfg.token_blocks; ++t) {
#pragma unroll
    for (int i = 0; i < 4; ++i) smem.sums[place.warp_k][place.warp_n][t][i][lane] = sums[t][i];
  }
  __syncthreads();
  // Each of the warps that shared k finishes its share of the blocks of rows.
#pragma unroll 1
  for (uint32_t t = place.warp_k; t < kCfg.token_blocks; t += kWarpsK) {
    float total[4] = {};
#pragma unroll
    for (int part = 0; part < kWarpsK; ++part) {
#pragma unroll
      for (int i = 0; i < 4; ++i) total[i] += smem.sums[part][place.warp_n][t][i][lane];
    }
    finish<kCfg>(params, place, t, total);
  }
}

}  // namespace dualgemm::cuda::sm80
