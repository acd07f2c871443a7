// What warps that multiply need of a CTA's coming tiles of experts' rows, found once for all of
// them by the warps that finish tiles. Part of dual_gemm.cuh.
//
// While each of 16 warps looked up every tile for itself, twice, for its weights and for its row of
// A, that was about 100 of its 730 instructions a tile at K = 2048, and 6 % of Qwen3-30B-A3B's
// time (docs/lab/sm90a_skinny.md, "Groups of experts").
#pragma once

#include "cuda/kernels/sm90a_skinny/multiply.cuh"

namespace dualgemm::cuda::sm90a_skinny {

// Writes what is needed of kPlanned tiles of the CTA, of those from number `first` on that there
// are. By each finishing warp, its share.
template <Config kCfg>
DUALGEMM_DEVICE void plan_tiles(const Params& params, SharedStorage<kCfg>& smem,
                                const Tiles<kCfg>& tiles, uint32_t finisher, uint32_t first) {
  constexpr uint32_t kShare = kPlanned / Budget<kCfg>::kFinishers;
  static_assert(kShare * Budget<kCfg>::kFinishers == kPlanned && Budget<kCfg>::kGroups == 1);
  const uint32_t lane = threadIdx.x % 32, row = lane % kGroupRows;
#pragma unroll 1
  for (uint32_t i = lane / kGroupRows; i < kShare; i += 32 / kGroupRows) {
    const uint32_t order = first + finisher * kShare + i;
    const uint32_t t = blockIdx.x + order * gridDim.x;
    if (t >= tiles.count(params)) break;
    const Tile tile = tiles.locate(params, t);
    const RowCursor at = row_of_a<kCfg>(params, tiles, tile, min(row, tile.rows - 1));
    PlannedTile& to = smem.planned[order % (2 * kPlanned)];
    to.data[row] = at.data;
    if constexpr (kCfg.a_type == AType::kE2M1) to.scales[row] = at.scales;
    if (row == 0) to.units = params.packed.unit(tile.batch, 0, tile.n_begin / kUnitCols);
  }
  __syncwarp();
}

// For a finishing warp that comes to tile number `order` of the CTA. If that is the first of
// kPlanned, it plans the next kPlanned, in the places of the last. Warps that multiply need these
// no more: they have left the sums of the tile before this one. They see the new plan when this
// tile's place for sums is free again, kTilesInFlight tiles on; a tile later they read it for
// weights at most kSlots tiles ahead. The first plan is not made before the loop over tiles: a
// branch before the warps' rings are set up takes these out of uniform registers.
template <Config kCfg>
DUALGEMM_DEVICE void plan_ahead(const Params& params, SharedStorage<kCfg>& smem,
                                const Tiles<kCfg>& tiles, uint32_t finisher, uint32_t order) {
  static_assert(kCfg.many && Budget<kCfg>::kTilesInFlight + 1 + Budget<kCfg>::kSlots < kPlanned);
  if (order % kPlanned != 0) return;
#pragma unroll 1
  for (uint32_t first = order == 0 ? 0 : order + kPlanned; first <= order + kPlanned;
       first += kPlanned) {
    plan_tiles<kCfg>(params, smem, tiles, finisher, first);
    if (first == 0) ptx::mbarrier_arrive(&smem.begun);
  }
}

}  // namespace dualgemm::cuda::sm90a_skinny
