// The fused dual GEMM for few rows of A (up to 8, with prepared weights up to 16) on Hopper: bound
// by reading the weights once.
//
// One launch, no workspace. A warp takes every 16th k-tile of its CTA's tiles, from the first
// byte to the sum, so that warps have nothing to say to each other: it copies the codes and scales
// of its k-tile to shared memory, ahead of their use (or, with prepared weights, has them copied),
// decodes them in registers, and mma.sync multiplies. Weights are the M operand (8 rows of Gate, 8
// of Up: both sums of an output are in one thread), A is the N operand, read and decoded straight
// from memory: no two warps of a CTA need the same part of it. The 16 sums of an output meet in
// shared memory and are added in a fixed order. With groups and prepared weights, warps that add
// sums also find the coming tiles for the others (plan_tiles.cuh).
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/device/group_tiles.cuh"
#include "cuda/kernels/common/make_group_tiles.cuh"
#include "cuda/kernels/sm90a_skinny/config.hpp"
#include "cuda/kernels/sm90a_skinny/params.hpp"
#include "cuda/ptx/cp_async.cuh"
#include "cuda/ptx/cp_async_bulk.cuh"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda::sm90a_skinny {

// A k-tile of one unit; [0] Gate, [1] Up.
struct UnitStorage {
  uint4 codes[2][kUnitCols * kTileRowBytes / 16];  // rows of 128 bytes, see swizzled_chunk()
  uint32_t scales[2][kUnitCols * 4];               // 16 of each row
};

// A warp's weights on their way, from a line of shared memory on, whatever lies before.
template <Config kCfg, bool kPrepared = kCfg.prepared>
struct alignas(128) RingStorage {
  UnitStorage units[Budget<kCfg>::kStages][kCfg.units];
};
// A bulk copy that begins at a line of shared memory: 16 bytes further it takes longer (11.25
// against 10.73 us at (4096, 7168), M = 8).
template <Config kCfg>
struct alignas(128) ChunkStorage {
  PackedUnit units[kCfg.units];
};
template <Config kCfg>
struct RingStorage<kCfg, true> {
  ChunkStorage<kCfg> chunks[Budget<kCfg>::kSlots];
};

// The sums of a tile: mma's d of each lane.
template <Config kCfg>
using Sums = float4[kCfg.units * Budget<kCfg>::kGroups][Budget<kCfg>::kMultipliers][32];

// With groups, the tiles of rows that the CTA has found, in the order of the experts, and its copy
// of the index of rows of A.
template <Config kCfg, bool kGrouped = kCfg.grouped>
struct RowTiles {};
template <Config kCfg>
struct RowTiles<kCfg, true> {
  GroupTile row_tiles[kOwnTiles];
  int32_t index[kept_rows(kCfg)];
  GroupTilesScratch scratch;
};

// With groups and prepared weights, what warps that multiply need of a tile: where its units' first
// chunk begins, and each row of A and its scales. A row that does not exist is the last one.
struct PlannedTile {
  const uint8_t* units;
  const uint8_t *data[kGroupRows], *scales[kGroupRows];
};
template <Config kCfg, bool kPlans = plans_tiles(kCfg)>
struct Plan {};
template <Config kCfg>
struct Plan<kCfg, true> {
  PlannedTile planned[2 * kPlanned];  // tile number i of the CTA in place i % (2 * kPlanned)
  ptx::Barrier begun;                 // all that finish arrive when the first kPlanned are there
};

template <Config kCfg>
struct SharedStorage : RowTiles<kCfg>, Plan<kCfg> {
  RingStorage<kCfg> rings[Budget<kCfg>::kMultipliers];
  Sums<kCfg> sums[Budget<kCfg>::kTilesInFlight];
  // With prepared weights, one for each chunk of a ring. Count 1 (+ bytes): lane 0, TMA hardware;
  // waits: the warp.
  ptx::Barrier full[Budget<kCfg>::kMultipliers][Budget<kCfg>::kSlots];
  // With many tiles, one for each of sums. left: all threads that multiply arrive, those that
  // finish wait; free: the other way round.
  ptx::Barrier left[Budget<kCfg>::kTilesInFlight], free[Budget<kCfg>::kTilesInFlight];
};

template <Config kCfg>
inline constexpr int kDynamicSmemBytes = sizeof(SharedStorage<kCfg>);

// Where a tile lies.
struct Tile {
  uint32_t n_begin, batch;  // or expert
  uint32_t m_begin, rows;   // of A and D, in their batch
  uint32_t padded_begin;    // row m_begin in swizzled scales
  uint32_t last;            // of groups: as GroupTile says
  uint32_t units;           // of the Config's, or fewer
};

template <Config kCfg>
DUALGEMM_DEVICE uint32_t units_of(const Tile& tile) {
  return has_narrow_tiles(kCfg) ? tile.units : kCfg.units;
}

// With groups, how many tiles of rows there are: those of the table, or those that the CTA finds.
// By all its threads, before anything else is read; a barrier that shared memory is set up behind.
// The index of rows is copied meanwhile (docs/lab/h200_experts.md, "Rows by index").
template <Config kCfg>
DUALGEMM_DEVICE uint32_t find_row_tiles(const Params& params, SharedStorage<kCfg>& smem) {
  ptx::griddepcontrol_wait();
  if (params.keeps_index) {
    for (uint32_t row = threadIdx.x; row < params.group_rows.m; row += Budget<kCfg>::kThreads)
      ptx::cp_async_4(&smem.index[row], params.row_index.of_a + row, 4);
  }
  const bool has_table = params.groups.table != nullptr;
  const uint32_t count = has_table ? number_of_tiles(params.groups)
                                   : make_group_tiles<Budget<kCfg>::kThreads, 1>(
                                         params.group_rows, smem.scratch, smem.row_tiles);
  if (params.keeps_index) ptx::cp_async_wait_all();
  group_tiles::sync_cta();
  return count;
}

// How many tiles there are, and where each lies.
template <Config kCfg>
class Tiles {
 public:
  DUALGEMM_DEVICE Tiles(const Params& params, SharedStorage<kCfg>& smem) {
    if constexpr (kCfg.grouped) {
      own_ = &smem;
      of_groups_ = find_row_tiles<kCfg>(params, smem) * params.tiles_n.value;
    }
  }

  DUALGEMM_DEVICE uint32_t count(const Params& params) const {
    return kCfg.grouped ? of_groups_ : params.tiles;
  }

  // With groups whose rows are found by index: the row of A that row `row` of the products is.
  DUALGEMM_DEVICE uint32_t row_by_index(const Params& params, uint32_t row) const {
    const int32_t of_a = params.keeps_index ? own_->index[row] : params.row_index.of_a[row];
    return min(static_cast<uint32_t>(of_a), params.row_index.rows - 1);
  }

  // There is nearly always only one batch: the division is behind a branch (-0.1 to -0.5 us).
  DUALGEMM_DEVICE Tile locate(const Params& params, uint32_t tile) const {
    if constexpr (kCfg.grouped) return locate_in_groups(params, tile);
    if (has_narrow_tiles(kCfg) && tile >= params.wide_tiles) {
      const uint32_t units =
          params.wide_tiles * kCfg.units + (tile - params.wide_tiles) * params.narrow_units;
      return {units * kUnitCols, 0, 0, params.m, 0, 0, params.narrow_units};
    }
    const uint32_t batch = tile < params.tiles_n.value ? 0 : quotient(tile, params.tiles_n);
    return {(tile - batch * params.tiles_n.value) * tile_n_of(kCfg),
            batch,
            0,
            params.m,
            0,
            0,
            static_cast<uint32_t>(kCfg.units)};
  }

 private:
  DUALGEMM_DEVICE Tile locate_in_groups(const Params& params, uint32_t tile) const {
    const uint32_t index = quotient(tile, params.tiles_n);
    const GroupTile rows =
        params.groups.table == nullptr ? own_->row_tiles[index] : tile_of(params.groups, index);
    return {(tile - index * params.tiles_n.value) * tile_n_of(kCfg),
            rows.expert,
            rows.begin,
            rows.end - rows.begin,
            rows.padded_begin,
            rows.last,
            static_cast<uint32_t>(kCfg.units)};
  }

  const RowTiles<kCfg>* own_ = nullptr;
  uint32_t of_groups_ = 0;
};

// Sums of one warp: [unit * groups + group of 8 rows of A][mma's d].
template <Config kCfg>
using Accumulators = float[kCfg.units * Budget<kCfg>::kGroups][4];

}  // namespace dualgemm::cuda::sm90a_skinny

#include "cuda/kernels/sm90a_skinny/copy_weights.cuh"
#include "cuda/kernels/sm90a_skinny/epilogue.cuh"
#include "cuda/kernels/sm90a_skinny/multiply.cuh"
#include "cuda/kernels/sm90a_skinny/multiply_packed.cuh"
#include "cuda/kernels/sm90a_skinny/plan_tiles.cuh"

namespace dualgemm::cuda::sm90a_skinny {

template <Config kCfg>
using Warp = std::conditional_t<kCfg.prepared, PackedWarp<kCfg>, CopyingWarp<kCfg>>;

template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  static_assert(kDynamicSmemBytes<kCfg> <= kSmemBytes, "one CTA fits an SM");
  extern __shared__ __align__(128) uint8_t dynamic_smem[];
  auto& smem = *reinterpret_cast<SharedStorage<kCfg>*>(dynamic_smem);
  const uint32_t index = threadIdx.x / 32;

  if constexpr (kCfg.prepared) init_barriers<kCfg>(smem);
  const Tiles<kCfg> tiles(params, smem);
  // Without groups there are no more CTAs than tiles.
  if (kCfg.grouped && blockIdx.x >= tiles.count(params)) return;
  Warp<kCfg> warp(params, smem, index, tiles);
  if constexpr (kCfg.prepared) {
    if constexpr (!kCfg.grouped) __syncthreads();
    warp.begin_early(params);
  }
  // Nothing else may be read before: the grid before this one may still be writing it.
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  warp.begin(params);

  [[maybe_unused]] uint32_t order = 0;  // of the CTA's tiles
#pragma unroll 1
  for (uint32_t t = blockIdx.x; t < tiles.count(params); t += gridDim.x) {
    const bool first = t == blockIdx.x;
    // Warps that multiply planned tiles do not need it. Kept over the loop along k it spills.
    Tile tile{};
    if constexpr (!plans_tiles(kCfg)) tile = tiles.locate(params, t);
    Accumulators<kCfg> acc{};
    const bool last = t + gridDim.x >= tiles.count(params);
    warp.multiply_tile(params, tile, last ? order : order + 1, first, acc);
    if constexpr (plans_tiles(kCfg)) {
      if (index >= Budget<kCfg>::kMultipliers) {
        plan_ahead<kCfg>(params, smem, tiles, index - Budget<kCfg>::kMultipliers, order);
        tile = tiles.locate(params, t);
      }
    } else if constexpr (kCfg.grouped) {
      tile = tiles.locate(params, t);
    }
    if constexpr (kCfg.many) {
      hand_over<kCfg>(params, smem, tile, index, order++, acc);
      continue;
    }
    // All warps meet at the same two barriers. With barriers of their own for finishers synccheck
    // reports those that are .aligned, racecheck sees no order at others.
    if (!first) __syncthreads();  // the last tile's sums have been read
    if (index < Budget<kCfg>::kMultipliers) leave_sums<kCfg>(smem.sums[0], tile.rows, index, acc);
    __syncthreads();
    if constexpr (!kCfg.prepared) {
      finish_tile<kCfg>(params, smem.sums[0], tile, index);
    } else if (index >= Budget<kCfg>::kMultipliers) {
      finish_unit<kCfg>(params, smem.sums[0], tile, index - Budget<kCfg>::kMultipliers);
    }
  }
}

}  // namespace dualgemm::cuda::sm90a_skinny
