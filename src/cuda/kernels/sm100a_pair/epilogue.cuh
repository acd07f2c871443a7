// From the accumulators to D. Part of dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/kernels/blackwell/finish_columns.cuh"
#include "cuda/ptx/global_store.cuh"

namespace dualgemm::cuda::sm100a_pair {

// What a warp of the epilogue has of the tile: a row a thread, some columns.
struct Share {
  uint32_t first_row, row;  // of the problem: the warp's, the thread's
  uint32_t first_col, end;  // of the tile; end: of columns that the problem has
  uint32_t tmem;            // the warp's lanes
  blackwell::RowScales scales;
};

DUALGEMM_DEVICE void wait_for_sums(const ptx::Barrier* complete, uint32_t parity) {
  ptx::mbarrier_wait_parity(complete, parity);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
}

// Whether D is silu(alpha_gate * g) * (alpha_up * u) and nothing else.
DUALGEMM_DEVICE bool is_plain_silu(const Params& params) {
  return params.act.kind == ActKind::kSilu && params.bias.gate == nullptr &&
         params.a_row_scale == nullptr && params.combine.residual == nullptr &&
         !params.combine.side_by_side;
}

// kChunks of neighbouring columns, two at a time, for a warp that has at least one; where there are
// fewer, it loads the first again.
template <int kChunks>
DUALGEMM_DEVICE void load_chunks(const Share& share, uint32_t acc_col,
                                 float (&sums)[kChunks][kEpilogueCols]) {
  const auto address = [&](int chunk) {
    const uint32_t col = share.first_col + chunk * kEpilogueCols;
    return share.tmem + acc_col + (col < share.end ? col : share.first_col);
  };
#pragma unroll
  for (int chunk = 0; chunk + 1 < kChunks; chunk += 2) {
    ptx::tcgen05_ld_32x32b_x16_pair(address(chunk), address(chunk + 1), sums[chunk],
                                    sums[chunk + 1]);
  }
  if constexpr (kChunks % 2 == 1)
    ptx::tcgen05_ld_32x32b_x16(address(kChunks - 1), sums[kChunks - 1]);
}

// Says to both CTAs that this warp has read its sums: no TMEM is freed before all have. Loads are
// those of whole warps, and waited for, so that one lane speaks for all.
template <Config kCfg>
DUALGEMM_DEVICE void sums_are_read(SharedStorage<kCfg>& smem) {
  ptx::tcgen05_fence_before_thread_sync();
  if (ptx::elect_sync()) {
#pragma unroll
    for (uint32_t rank = 0; rank < kPairCtas; ++rank)
      ptx::mbarrier_arrive_cluster(ptx::mapa(&smem.sums_read, rank));
  }
}

// The same of one accumulator, to the thread that multiplies the next tile.
DUALGEMM_DEVICE void sums_are_free(const ptx::Barrier* free) {
  ptx::tcgen05_fence_before_thread_sync();
  if (ptx::elect_sync()) ptx::mbarrier_arrive_cluster(ptx::mapa(free, 0));
}

// Outputs of a row that exists, from column n_begin on, which is D's: 32 bytes at a time where they
// lie so.
template <OutputType kOutput>
DUALGEMM_DEVICE void store_chunk(const Params& params, uint32_t batch, uint32_t row,
                                 uint32_t n_begin, float (&outputs)[kEpilogueCols]) {
  if constexpr (kOutput == OutputType::kE2M1) {
    blackwell::store_block(params, rows_of_batch(params, batch), row, n_begin / kBlock, outputs);
  } else {
    constexpr int kBytes = bytes_of(kOutput);
    constexpr int kWords = kEpilogueCols * kBytes / 4;
    uint8_t* const to = params.d + batch * params.d_batch_bytes + row * params.d_row_bytes +
                        static_cast<uint64_t>(n_begin) * kBytes;
    uint32_t words[kWords];
    pack_words<kOutput>(outputs, words);
    const auto valid = static_cast<int>(params.n - n_begin);
    if (valid >= kEpilogueCols && reinterpret_cast<uintptr_t>(to) % 32 == 0) {
#pragma unroll
      for (int i = 0; i < kWords; i += 8) ptx::st_global_32_bytes(to + 4 * i, words + i);
    } else {
      store_words<kOutput, kEpilogueCols>(to, words, valid);
    }
  }
}

// Plain SiLU: Gate is activated while the MMAs of Up are not complete yet, and stays in registers.
// The same operations as finish_columns(), so the same bits.
template <Config kCfg>
DUALGEMM_DEVICE void finish_silu(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile,
                                 const Share& share) {
  using B = Budget<kCfg>;
  constexpr int kChunks = B::kGroupCols / kEpilogueCols;
  const bool has_columns = share.first_col < share.end;
  float g[kChunks][kEpilogueCols], u[kChunks][kEpilogueCols];
  if (has_columns) {
    load_chunks<kChunks>(share, B::kAccGateCol, g);
#pragma unroll
    for (int i = 0; i < kChunks * kEpilogueCols; ++i) {
      float& value = g[i / kEpilogueCols][i % kEpilogueCols];
      value = activate<ActKind::kSilu>(params.act, value * share.scales.alpha_gate, 1.0f);
    }
  }
  wait_for_sums(&smem.acc_up, 0);
  if (has_columns) load_chunks<kChunks>(share, B::kAccUpCol, u);
  sums_are_read(smem);
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const uint32_t col = share.first_col + chunk * kEpilogueCols;
    if (col >= share.end) break;
#pragma unroll
    for (int i = 0; i < kEpilogueCols; ++i)
      g[chunk][i] = g[chunk][i] * (u[chunk][i] * share.scales.alpha_up);
    if (share.row < params.m)
      store_chunk<kCfg.output>(params, tile.batch, share.row, tile.n_begin + col, g[chunk]);
  }
}

// Anything: columns by columns, when both sums are complete.
template <Config kCfg>
DUALGEMM_DEVICE void finish_any(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile,
                                const Share& share) {
  using B = Budget<kCfg>;
  wait_for_sums(&smem.acc_up, 0);
#pragma unroll 1
  for (uint32_t col = share.first_col; col < share.end; col += kEpilogueCols) {
    float g[kEpilogueCols], u[kEpilogueCols];
    ptx::tcgen05_ld_32x32b_x16_pair(share.tmem + B::kAccGateCol + col,
                                    share.tmem + B::kAccUpCol + col, g, u);
    blackwell::finish_columns<kCfg.output>(params, share.scales, tile.batch, share.row,
                                           tile.n_begin + col, g, u);
  }
  sums_are_read(smem);
}

// One of a pair's tiles: all sums to registers, each product's as soon as it is complete, so that
// the next tile's may be made in their place; then columns by columns, by `finish`.
template <Config kCfg, class TurnsOfPair, class Finish>
DUALGEMM_DEVICE void finish_turn(SharedStorage<kCfg>& smem, const Share& share,
                                 const TurnsOfPair& turns, const Finish& finish) {
  using B = Budget<kCfg>;
  constexpr int kChunks = B::kGroupCols / kEpilogueCols;
  const bool has_columns = share.first_col < share.end;
  float g[kChunks][kEpilogueCols], u[kChunks][kEpilogueCols];
  if (has_columns) load_chunks<kChunks>(share, B::kAccGateCol, g);
  if (!turns.is_last()) sums_are_free(&smem.gate_free);
  wait_for_sums(&smem.acc_up, turns.parity());
  if (has_columns) load_chunks<kChunks>(share, B::kAccUpCol, u);
  if (turns.is_last()) {
    sums_are_read(smem);
  } else {
    sums_are_free(&smem.up_free);
  }
#pragma unroll 1
  for (uint32_t col = share.first_col; col < share.end; col += kEpilogueCols) {
    finish(col, g[0], u[0]);
    // The next columns come to the front: registers have no index.
#pragma unroll
    for (int i = 0; i < (kChunks - 1) * kEpilogueCols; ++i) {
      const int chunk = i / kEpilogueCols, in_chunk = i % kEpilogueCols;
      g[chunk][in_chunk] = g[chunk + 1][in_chunk];
      u[chunk][in_chunk] = u[chunk + 1][in_chunk];
    }
  }
}

// Runs on: the other warps of each CTA; `index` counts them.   Waits: the grid before, acc_gate,
// acc_up.   Arrives: sums_read of both CTAs; persistent: gate_free and up_free of the leader.
template <Config kCfg>
DUALGEMM_DEVICE void epilogue(const Params& params, SharedStorage<kCfg>& smem, uint32_t tmem_base,
                              uint32_t index) {
  using B = Budget<kCfg>;
  const uint32_t first_lane = ptx::warp_index() % 4 * 32;
  Share share;
  share.first_col = index / 4 * B::kGroupCols;
  const uint32_t end_col = min(share.first_col + B::kGroupCols, static_cast<uint32_t>(kCfg.tile_n));
  share.tmem = tmem_base + (first_lane << 16);  // the lane field: this warp's own

  ptx::griddepcontrol_wait();  // D may still be read, and what scales may still be written
#pragma unroll 1
  for (Turns<kCfg> turns(params);; turns.advance()) {
    const Tile tile = turns.tile();
    share.first_row = tile.m_begin + first_lane;
    share.row = share.first_row + threadIdx.x % 32;
    share.scales = blackwell::row_scales(params, tile.batch, share.row);
    if constexpr (kCfg.output == OutputType::kE2M1) {
      // A CTA without any row has no tile of scales either.
      if (tile.m_begin < params.m && share.row >= params.m) {
        blackwell::clear_scales(params, tile.batch, share.row, tile.n_begin + share.first_col,
                                tile.n_begin + end_col);
      }
      __syncwarp();
    }
    // No columns for a warp that has no row.
    share.end = share.first_row < params.m ? min(end_col, params.n - tile.n_begin) : 0;
    wait_for_sums(&smem.acc_gate, turns.parity());
    if constexpr (kCfg.persistent) {
      finish_turn(smem, share, turns, [&](uint32_t col, auto& g, auto& u) {
        blackwell::finish_columns<kCfg.output>(params, share.scales, tile.batch, share.row,
                                               tile.n_begin + col, g, u);
      });
    } else if (is_plain_silu(params)) {
      finish_silu(params, smem, tile, share);
    } else {
      finish_any(params, smem, tile, share);
    }
    if (turns.is_last()) return;
  }
}

}  // namespace dualgemm::cuda::sm100a_pair
