// From the warps' sums to D. Part of dual_gemm.cuh.
#pragma once

#include "cuda/device/combine.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/common/store_nvfp4.cuh"
#include "cuda/kernels/sm90a_skinny/multiply.cuh"
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/warp.cuh"

namespace dualgemm::cuda::sm90a_skinny {

// The first of the two rows of a group whose sums mma leaves in one lane.
DUALGEMM_DEVICE uint32_t first_row(uint32_t group, uint32_t lane) {
  return group * kGroupRows + lane % 4 * 2;
}

// The column of a unit whose sums mma leaves in one lane.
DUALGEMM_DEVICE uint32_t column_of(const Tile& tile, uint32_t unit, uint32_t lane) {
  return tile.n_begin + unit * kUnitCols + lane / 4;
}

// Both products, with alphas and biases, of the two rows whose sums mma leaves in one lane:
// first_row(), which exists, and the next, in a column that exists.
template <Config kCfg>
DUALGEMM_DEVICE void products_of(const Params& params, const Tile& tile, uint32_t col,
                                 uint32_t group, uint32_t lane, const float4& sums, float (&g)[2],
                                 float (&u)[2]) {
  constexpr float kUnit = kDecodedUnit * (kCfg.a_type == AType::kE2M1 ? kDecodedUnit : 1.0f);
  const uint32_t row = first_row(group, lane), batch_row = tile.m_begin + row;
  const bool both = row + 1 < tile.rows;
  const Alphas alphas = alphas_of(params, tile.batch);
  g[0] = sums.x, g[1] = sums.y;
  u[0] = sums.z, u[1] = sums.w;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float row_scale = 1.0f;
    if (params.a_row_scale != nullptr && (i == 0 || both))
      row_scale = params.a_row_scale[static_cast<uint64_t>(tile.batch) * params.row_scale_stride +
                                     batch_row + i];
    g[i] = g[i] * kUnit * alphas.gate * row_scale;
    u[i] = u[i] * kUnit * alphas.up * row_scale;
  }
  add_column_bias(params, tile.batch, col, g, u);
}

// One of two products, to D, which is not kE2M1. row: of the tile.
DUALGEMM_DEVICE void store_column(const Params& params, const Tile& tile, uint32_t row,
                                  uint32_t col, int product, const float (&outputs)[2]) {
  const Columns columns = columns_of(params, product);
  if (col >= columns.end) return;
  uint8_t* const to = params.d + tile.batch * params.d_batch_bytes +
                      (tile.m_begin + row) * params.d_row_bytes +
                      static_cast<uint64_t>(col + columns.shift) * bytes_of(params.output);
  store_element(params.output, to, with_residual(params, params.output, to, outputs[0]));
  if (row + 1 >= tile.rows) return;
  uint8_t* const next = to + params.d_row_bytes;
  store_element(params.output, next, with_residual(params, params.output, next, outputs[1]));
}

template <Config kCfg>
DUALGEMM_DEVICE void store_outputs(const Params& params, const Tile& tile, uint32_t unit,
                                   uint32_t group, uint32_t lane, const float4& sums) {
  const uint32_t col = column_of(tile, unit, lane), row = first_row(group, lane);
  if (col >= params.n) return;
  float g[2], u[2];
  products_of<kCfg>(params, tile, col, group, lane, sums, g, u);
  if (params.combine.side_by_side) {
    for_outputs(params, g, u, [&](int product, const float(&outputs)[2]) {
      store_column(params, tile, row, col, product, outputs);
    });
    return;
  }
  // One output has no residual: nothing is asked for between the sums and the stores.
  activate_all_silu_first(params.act, g, u);
  uint8_t* const to = params.d + tile.batch * params.d_batch_bytes +
                      (tile.m_begin + row) * params.d_row_bytes +
                      static_cast<uint64_t>(col) * bytes_of(params.output);
  store_element(params.output, to, g[0]);
  if (row + 1 < tile.rows) store_element(params.output, to + params.d_row_bytes, g[1]);
}

template <Config kCfg>
DUALGEMM_DEVICE OutputRows rows_of_tile(const Params& params, const Tile& tile) {
  if constexpr (kCfg.grouped) {
    const GroupTile rows{tile.batch, tile.last, tile.m_begin, tile.m_begin + tile.rows,
                         tile.padded_begin};
    return rows_of_group(params, rows);
  }
  return rows_of_batch(params, tile.batch);
}

// To D, which is kE2M1: two units are a block of 16 columns. sums[0] are those of unit `unit`,
// sums[1] those of the next. By a warp; rows need not exist.
template <Config kCfg>
DUALGEMM_DEVICE void store_block(const Params& params, const Tile& tile, uint32_t unit,
                                 uint32_t group, uint32_t lane, const float4 (&sums)[2]) {
  const uint32_t row = first_row(group, lane);
  const uint32_t col = column_of(tile, unit, lane);
  const OutputRows rows = rows_of_tile<kCfg>(params, tile);
  float g[4] = {}, u[4] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (row < tile.rows && col < params.n) {
      float g_half[2], u_half[2];
      products_of<kCfg>(params, tile, col + half * kUnitCols, group, lane, sums[half], g_half,
                        u_half);
      g[2 * half] = g_half[0], g[2 * half + 1] = g_half[1];
      u[2 * half] = u_half[0], u[2 * half + 1] = u_half[1];
    }
  }
  __syncwarp();
  for_outputs(params, g, u, [&](int product, const float(&outputs)[4]) {
    const uint32_t block = block_of(params, columns_of(params, product), col);
    store_two_rows(params, rows, tile.m_begin + row, block, {outputs[0], outputs[1]},
                   {outputs[2], outputs[3]});
    clear_scales_below(params, rows, tile.m_begin + group * kGroupRows, kGroupRows, block);
  });
}

DUALGEMM_DEVICE void add(float4& sum, const float4& part) {
  sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
}

// Adds what lanes l, l+8, l+16, l+24 have.
DUALGEMM_DEVICE void add_across(float4& sum) {
#pragma unroll
  for (int distance = 8; distance < 32; distance *= 2) {
    add(sum, make_float4(__shfl_xor_sync(0xFFFFFFFFu, sum.x, distance),
                         __shfl_xor_sync(0xFFFFFFFFu, sum.y, distance),
                         __shfl_xor_sync(0xFFFFFFFFu, sum.z, distance),
                         __shfl_xor_sync(0xFFFFFFFFu, sum.w, distance)));
  }
}

// To shared memory: this warp's sums, only what belongs to the first `rows` rows (of a narrow
// tile's missing units zeros, which are not read).
template <Config kCfg>
DUALGEMM_DEVICE void leave_sums(Sums<kCfg>& sums, uint32_t rows, uint32_t warp,
                                const Accumulators<kCfg>& acc) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int group = 0; group < Budget<kCfg>::kGroups; ++group) {
    if (first_row(group, lane) >= rows) break;
#pragma unroll
    for (int unit = 0; unit < kCfg.units; ++unit) {
      const int at = unit * Budget<kCfg>::kGroups + group;
      const float(&mine)[4] = acc[at];
      sums[at][warp][lane] = make_float4(mine[0], mine[1], mine[2], mine[3]);
    }
  }
  __syncwarp();
}

// The sums of four warps, in ascending order.
template <Config kCfg>
DUALGEMM_DEVICE float4 add_four(const Sums<kCfg>& sums, uint32_t unit, uint32_t first,
                                uint32_t slot) {
  float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
  for (int i = 0; i < 4; ++i) add(total, sums[unit][first + i][slot]);
  return total;
}

// As finish_tile() does, with the same sums: a warp takes both units of a block, a lane all of an
// output's.
template <Config kCfg>
DUALGEMM_DEVICE void finish_blocks(const Params& params, const Sums<kCfg>& sums, const Tile& tile,
                                   uint32_t warp) {
  const uint32_t lane = ptx::thread_index_anew() % 32, unit = 2 * warp;
  if (unit >= kCfg.units) return;
  float4 totals[2] = {};
  if (first_row(0, lane) < tile.rows) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float4 parts[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) parts[i] = add_four<kCfg>(sums, unit + half, 4 * i, lane);
      add(parts[0], parts[1]), add(parts[2], parts[3]), add(parts[0], parts[2]);
      totals[half] = parts[0];
    }
  }
  __syncwarp();
  store_block<kCfg>(params, tile, unit, 0, lane, totals);
}

// By all threads of the CTA, when the sums of all warps are there. Four warps finish one unit: a
// lane adds the sums of four warps in ascending order, then the four lanes that share an output add
// theirs.
template <Config kCfg>
DUALGEMM_DEVICE void finish_tile(const Params& params, const Sums<kCfg>& sums, const Tile& tile,
                                 uint32_t warp) {
  if constexpr (writes_nvfp4(kCfg)) {
    if (params.output == OutputType::kE2M1) return finish_blocks<kCfg>(params, sums, tile, warp);
  }
  const uint32_t lane = ptx::thread_index_anew() % 32;
  const uint32_t unit = warp / 4, slot = warp % 4 * 8 + lane % 8, first = lane / 8 * 4;
  if (unit >= kCfg.units) return;
  const bool exists = first_row(0, slot) < tile.rows;
  float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (exists) total = add_four<kCfg>(sums, unit, first, slot);
  __syncwarp();
  add_across(total);
  if (lane < 8 && exists) store_outputs<kCfg>(params, tile, unit, 0, slot, total);
  __syncwarp();
}

// The sums of all warps, in ascending order.
template <Config kCfg>
DUALGEMM_DEVICE float4 add_all(const Sums<kCfg>& sums, uint32_t unit, uint32_t group) {
  float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
  for (int i = 0; i < Budget<kCfg>::kMultipliers; ++i)
    add(total, sums[unit * Budget<kCfg>::kGroups + group][i][threadIdx.x % 32]);
  return total;
}

// With prepared weights, by warp `unit` of those that do nothing else: they have instructions and
// parameters at hand when the sums come, 0.1 to 0.4 us less at (4096, 7168) than the same work by
// the warps that multiplied. A block of two units is finished by the first one's warp.
template <Config kCfg>
DUALGEMM_DEVICE void finish_unit(const Params& params, const Sums<kCfg>& sums, const Tile& tile,
                                 uint32_t unit) {
  if (unit >= units_of<kCfg>(tile)) return;
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll 1
  for (int group = 0; group < Budget<kCfg>::kGroups; ++group) {
    const bool exists = first_row(group, lane) < tile.rows;
    if constexpr (writes_nvfp4(kCfg)) {
      if (params.output == OutputType::kE2M1) {
        if (unit % 2 != 0) break;
        float4 totals[2] = {};
        if (exists) {
          totals[0] = add_all<kCfg>(sums, unit, group);
          totals[1] = add_all<kCfg>(sums, unit + 1, group);
        }
        __syncwarp();
        store_block<kCfg>(params, tile, unit, group, lane, totals);
        continue;
      }
    }
    if (exists)
      store_outputs<kCfg>(params, tile, unit, group, lane, add_all<kCfg>(sums, unit, group));
  }
  __syncwarp();
}

// Tile number `order` of a CTA with many: warps that multiply leave their sums, the others finish
// the tile. Only those wait for warps that multiply, which so may be a tile apart. All lanes
// arrive: racecheck sees no order where one does for a warp.
template <Config kCfg>
DUALGEMM_DEVICE void hand_over(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile,
                               uint32_t warp, uint32_t order, const Accumulators<kCfg>& acc) {
  static_assert(Budget<kCfg>::kTilesInFlight == 2);
  const uint32_t at = order % 2, parity = order / 2 % 2;
  if (warp < Budget<kCfg>::kMultipliers) {
    ptx::mbarrier_wait_parity(&smem.free[at], parity ^ 1);
    // With groups all rows, whether they exist or not: so the tile need not be looked up.
    leave_sums<kCfg>(smem.sums[at], kCfg.grouped ? kCfg.tile_m : tile.rows, warp, acc);
    ptx::mbarrier_arrive(&smem.left[at]);
  } else {
    ptx::mbarrier_wait_parity(&smem.left[at], parity);
    finish_unit<kCfg>(params, smem.sums[at], tile, warp - Budget<kCfg>::kMultipliers);
    ptx::mbarrier_arrive(&smem.free[at]);
  }
}

}  // namespace dualgemm::cuda::sm90a_skinny
