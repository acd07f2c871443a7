// The same for groups of experts, and for many columns: persistent CTAs over the table of tiles
// (device/group_tiles.hpp), as sm100a_skinny/grouped.cuh has them: tile n * row_tiles + r has
// columns n and entry r of the table, CTA c does the tiles c, c + CTAs, .... No tile of k is
// shared, so that there is no cluster; which rows and columns a tile has depends on the table
// alone.
//
//   warp    role             does
//   0-7     decode_tiles     codes and scales in shared memory -> fp16 or bf16 in TMEM
//   8       load_tiles       one thread: eight TMA loads a stage
//   9       multiply_tiles   allocates and frees TMEM; one thread: an MMA per K = 16
//   10-13   finish_tiles     the epilogue, while the next tile is decoded and multiplied
//
//   Rings of stages and of slots go on from tile to tile, and barriers with them. Two accumulators,
//   in columns 0 .. tile_m-1 and tile_m .. 2*tile_m-1, take turns; slots begin at column 128.
//
//   barrier        count   arrives                          waits                  first wait
//   codes_full, a_full, w_full  as without groups, by load_tiles and decode_tiles
//   empty[s]       1       multiply_tiles (tcgen05.commit)  load_tiles             passes
//   w_empty[g][i]  1       multiply_tiles (tcgen05.commit)  decode_tiles           passes
//   acc_full[a]    1       multiply_tiles (tcgen05.commit)  finish_tiles           phase 0
//   acc_empty[a]   4       finish_tiles, a lane of a warp   multiply_tiles         passes
//   bar.sync 1             finish_tiles: what the other product's warps left is there, and what
//                          they left two turns ago is read
//
// Rows of A come by their number: those behind the tile's last one are the next expert's, or zeros,
// and their sums are never stored. Prepared weights are for the same instances: their scales lie in
// rows, as linear ones of unpacked weights do.
//
// Many columns without groups are done in the same way, and without a table: entry r is tile r of
// the rows of all batches. With a table all threads wait for the grid before (griddepcontrol.wait),
// which makes it, before they read anything of the problem; else those that read or write global
// memory, and prepared weights are loaded before that as far as the ring goes, and decoded as far
// as slots go.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/kernels/blackwell/finish_tiles.cuh"
#include "cuda/kernels/sm100a_w4a16/dual_gemm.cuh"

namespace dualgemm::cuda::sm100a_w4a16 {

using blackwell::early_stages;
using blackwell::GroupedTiles;
using blackwell::tiles_of_cta;

template <Config kCfg>
struct GroupedStorage : SharedStorage<kCfg> {
  blackwell::Exchange<finished_tile(kCfg)> exchange;
  ptx::Barrier acc_empty[Budget<kCfg>::kAccs];
};
// What an instance has in shared memory. Not an alias: nvcc 13.0 loses its argument on the way to
// the host's compiler.
template <Config kCfg>
struct StorageOf : std::conditional_t<kCfg.grouped, GroupedStorage<kCfg>, SharedStorage<kCfg>> {};

template <int kTileM>
DUALGEMM_DEVICE Tile tile_at(const Params& params, const GroupedTiles<kTileM>& tiles) {
  const uint32_t expert = tiles.rows().expert;
  return {.m_begin = tiles.rows().begin,
          .n_begin = tiles.column_tile() * kTileN,
          .batch = expert,
          .a_batch = params.groups.one_batch ? 0 : expert};
}

// Runs on: one thread of kLoadWarp.   Waits: the grid before, but for prepared weights without a
// table; empty[stage].   Arrives: codes_full[stage], a_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void load_tiles(const Params& params, GroupedStorage<kCfg>& smem) {
  const ptx::CachePolicy keep = ptx::createpolicy_evict_last();
  const ptx::CachePolicy pass = ptx::createpolicy_evict_first();
  const uint32_t bytes = weight_bytes<kCfg>(params);
  const auto load_weights = [&](const Tile& tile, uint32_t index, uint32_t k_tile) {
    ptx::Barrier* const full = &smem.codes_full[index];
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    load_stage_of_weights(params, smem.stages[index], tile, k_tile, full, pass);
  };
  GroupedTiles<kCfg.tile_m> tiles(params);
  uint32_t early = tiles.is_valid() ? early_stages(params, smem.kStages) : 0;
#pragma unroll 1
  for (uint32_t k_tile = 0; k_tile < early; ++k_tile)
    load_weights(tile_at(params, tiles), k_tile, k_tile);
  ptx::griddepcontrol_wait();
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (; tiles.is_valid(); tiles.advance(params), early = 0) {
    tiles.ask_for_next(params);
    const Tile tile = tile_at(params, tiles);
#pragma unroll 1
    for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
      ptx::mbarrier_wait_parity(&smem.empty[ring.stage], ring.round_parity ^ 1);
      if (k_tile >= early) load_weights(tile, ring.stage, k_tile);
      load_stage_of_a<kCfg>(params, smem, tile, ring.stage, k_tile, keep);
    }
  }
}

// Runs on: warps 0 .. kWorkWarps-1.   Waits: codes_full[stage], w_empty[group][slot].   Arrives:
// w_full[group][slot].
template <Config kCfg>
DUALGEMM_DEVICE void decode_tiles(const Params& params, GroupedStorage<kCfg>& smem,
                                  uint32_t tmem_base, uint32_t warp) {
  RingPosition<smem.kStages> ring;
  RingPosition<kSlots> slots;
#pragma unroll 1
  for (GroupedTiles<kCfg.tile_m> tiles(params); tiles.is_valid(); tiles.advance(params)) {
    tiles.ask_for_next(params);
    const DecoderRow mine = row_of_decoder(params, tiles.column_tile() * kTileN,
                                           tmem_base + Budget<kCfg>::kSlotCol, warp);
#pragma unroll 1
    for (uint32_t k_tile = 0; k_tile < params.num_k_tiles;
         ++k_tile, ring.advance(), slots.advance())
      decode_stage<kCfg>(smem, mine, ring, slots, true);
  }
}

// Runs on: one thread of kMmaWarp.   Waits: acc_empty[acc], a_full[stage], w_full[group][slot].
// Arrives: w_empty[group][slot], empty[stage], acc_full[acc].
template <Config kCfg>
DUALGEMM_DEVICE void multiply_tiles(const Params& params, GroupedStorage<kCfg>& smem,
                                    uint32_t tmem_base) {
  const uint32_t tiles = tiles_of_cta<kCfg.tile_m>(params);
  uint64_t stages_left = uint64_t{tiles} * params.num_k_tiles;
  RingPosition<smem.kStages> ring;
  RingPosition<kSlots> slots;
  RingPosition<Budget<kCfg>::kAccs> acc;
#pragma unroll 1
  for (uint32_t tile = 0; tile < tiles; ++tile, acc.advance()) {
    ptx::mbarrier_wait_parity(&smem.acc_empty[acc.stage], acc.round_parity ^ 1);
#pragma unroll 1
    for (uint32_t k_tile = 0; k_tile < params.num_k_tiles;
         ++k_tile, --stages_left, ring.advance(), slots.advance()) {
      // Each phase that completes is waited for: nothing arrives at a CTA that has gone.
      multiply_stage<kCfg>(smem, tmem_base, tmem_base + acc.stage * kCfg.tile_m, ring, slots,
                           k_tile == 0, stages_left > kSlots, stages_left > smem.kStages);
    }
    ptx::tcgen05_commit(&smem.acc_full[acc.stage]);
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void grouped_prologue(const Params& params, GroupedStorage<kCfg>& smem,
                                      uint32_t warp) {
  if (warp == kLoadWarp && ptx::elect_sync()) {
    prefetch_and_init<kCfg>(params, smem);
    for (ptx::Barrier& empty : smem.acc_empty) ptx::mbarrier_init(&empty, kGroupWarps);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  blackwell::allocate_tmem(&smem.tmem_base, warp == kMmaWarp);
  blackwell::wait_for_table(params);
}

template <Config kCfg>
requires(kCfg.grouped) DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  static_assert(sizeof(StorageRules<kCfg>) > 0);
  extern __shared__ uint8_t dynamic_smem[];
  auto& smem = blackwell::storage_in<GroupedStorage<kCfg>>(dynamic_smem);
  const uint32_t warp = ptx::warp_index();

  grouped_prologue<kCfg>(params, smem, warp);
  const uint32_t tmem_base = smem.tmem_base;
  if (warp == kLoadWarp) {
    if (ptx::elect_sync()) load_tiles<kCfg>(params, smem);
  } else if (warp == kMmaWarp) {
    if (ptx::elect_sync()) multiply_tiles<kCfg>(params, smem, tmem_base);
  } else if (warp < kWorkWarps) {
    decode_tiles<kCfg>(params, smem, tmem_base, warp);
  } else {
    // Warps 10 .. 13 reach lanes 64 .., 96 .., 0 .., 32 ..
    blackwell::finish_tiles<finished_tile(kCfg)>(params, smem, tmem_base, warp % kGroupWarps);
  }
  blackwell::free_tmem(tmem_base, warp == kMmaWarp);
}

}  // namespace dualgemm::cuda::sm100a_w4a16
