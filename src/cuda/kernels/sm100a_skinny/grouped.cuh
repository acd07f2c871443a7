// The same for groups of experts, and for many columns: persistent CTAs over the table of tiles
// (device/group_tiles.hpp).
//
// A tile is tile_n columns of D for up to tile_m rows of one expert. Tile number n * row_tiles + r
// has columns n and entry r of the table; CTA c does the tiles c, c + CTAs, ...: tiles of one
// expert and the same columns run next to each other, so that HBM gives their weights once, and
// those of an expert without rows are never loaded. Rows and columns of D that a tile has depend on
// the table alone, never on how many CTAs there are.
//
//   warp   role            does
//   0-3    finish_tiles    the epilogue, while the next tile is multiplied
//   4      load_tiles      one thread: six or seven TMA loads a stage
//   5      multiply_tiles  allocates and frees TMEM; one thread: scales to TMEM, MMAs
//   6-9    mix_tiles       the scales of the MMA's rows, from Gate's and Up's tiles; A's in order
//
//   The ring goes on from tile to tile, and barriers with it. Two accumulators, in columns
//   0 .. tile_m-1 and tile_m .. 2*tile_m-1, take turns.
//
//   barrier        count   arrives                          waits                  first wait
//   ab_full, sf_full       as without groups
//   ab_empty[s]    1       multiply_tiles (tcgen05.commit)  load_tiles             passes
//   acc_full[a]    1       multiply_tiles (tcgen05.commit)  finish_tiles           phase 0
//   acc_empty[a]   4       finish_tiles, a lane of a warp   multiply_tiles         passes
//   bar.sync 1             finish_tiles: what the other product's warps left is there, and what
//                          they left two turns ago is read
//
// Rows of A come by their number: those behind the tile's last one are the next expert's, or
// zeros, and their sums are never stored. Scales of A in the swizzled layout have 128 rows a tile,
// and a row of the MMA needs its own at its own place. Row 0 of a tile of D may be any row of
// theirs (contiguous groups whose scales are one matrix, as with row_experts), or a multiple of
// tile_m behind one of 128 (masked, or padded for each expert): so one or two of their tiles are
// loaded, and mix_tiles puts words where they belong; rows that the tile does not have get zeros.
// Linear scales, of any operand, come as 16 bytes a row, a word for each step. No copy depends on
// the table.
//
// Many columns without groups are done in the same way, and without a table: entry r is tile r of
// the rows of all batches. Then only threads that read or write global memory wait for the grid
// before, and prepared weights are loaded before that as far as the ring goes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/kernels/blackwell/finish_tiles.cuh"
#include "cuda/kernels/sm100a_skinny/dual_gemm.cuh"

namespace dualgemm::cuda::sm100a_skinny {

using blackwell::GroupedTiles;

template <Config kCfg>
struct GroupedStorage : SharedStorage<kCfg> {
  blackwell::Exchange<finished_tile(kCfg)> exchange;
  ptx::Barrier acc_empty[Budget<kCfg>::kAccs];
};
// What an instance has in shared memory. Not an alias: nvcc 13.0 loses its argument on the way to
// the host's compiler.
template <Config kCfg>
struct StorageOf : std::conditional_t<kCfg.grouped, GroupedStorage<kCfg>, SharedStorage<kCfg>> {};

template <Config kCfg>
DUALGEMM_DEVICE Tile tile_of(const GroupedTiles<kCfg.tile_m>& tiles) {
  return {tiles.column_tile() * kCfg.tile_n, tiles.rows().expert};
}

// Where the scales of a tile's rows of A lie, if not in rows as A itself.
struct ScalesOfA {
  uint32_t tile;   // first row of scale tiles
  uint32_t first;  // row in it
  bool in_two;     // the rest is in the next one
};

DUALGEMM_DEVICE ScalesOfA scales_of_a(const Params& params, const GroupTile& rows) {
  const uint32_t begin = params.padded_scales_of_a ? rows.padded_begin : rows.begin;
  const uint32_t first = begin % kScaleTileRows;
  return {begin / kScaleTileRows, first, first + (rows.end - rows.begin) > kScaleTileRows};
}

}  // namespace dualgemm::cuda::sm100a_skinny

#include "cuda/kernels/sm100a_skinny/grouped_roles.cuh"

namespace dualgemm::cuda::sm100a_skinny {

template <Config kCfg>
DUALGEMM_DEVICE void grouped_prologue(const Params& params, GroupedStorage<kCfg>& smem,
                                      uint32_t warp) {
  if (warp == kLoadWarp && ptx::elect_sync()) {
    prefetch_and_init<kCfg>(params, smem);
    for (ptx::Barrier& empty : smem.acc_empty) ptx::mbarrier_init(&empty, kEpilogueWarps);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  blackwell::allocate_tmem(&smem.tmem_base, warp == kMmaWarp);
  blackwell::wait_for_table(params);
}

template <Config kCfg>
requires(kCfg.grouped) DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  static_assert(sizeof(StorageRules<kCfg>) > 0);
  static_assert(Budget<kCfg>::kUsedRows == kMmaM, "all warps of the epilogue have lanes");
  extern __shared__ uint8_t dynamic_smem[];
  auto& smem = storage_in<GroupedStorage<kCfg>>(dynamic_smem);
  const uint32_t warp = ptx::warp_index();

  grouped_prologue(params, smem, warp);
  const uint32_t tmem_base = smem.tmem_base;
  if (warp == kLoadWarp) {
    if (ptx::elect_sync()) load_tiles(params, smem);
  } else if (warp == kMmaWarp) {
    if (ptx::elect_sync()) multiply_tiles(params, smem, tmem_base);
  } else if (warp < kEpilogueWarps) {
    blackwell::finish_tiles<finished_tile(kCfg)>(params, smem, tmem_base, warp);
  } else {
    mix_tiles(params, smem, warp - kFirstMixWarp);
  }
  blackwell::free_tmem(tmem_base, warp == kMmaWarp);
}

}  // namespace dualgemm::cuda::sm100a_skinny
