// Scales in shared memory: from how they lie to what the tensor core copies. Part of dual_gemm.cuh,
// which has the tables.
#pragma once

namespace dualgemm::cuda::sm100a_pair_groups {

using blackwell::ScaleWords;
using sm100a_pair::arrange_rows;
using sm100a_pair::ScaleTiles;

// By a warp, in place: two rows of scale tiles become one, of which `count` rows from `first` on
// are wanted; zeros for the rest.
DUALGEMM_DEVICE void arrange_tiles(uint8_t* scales, uint32_t first, uint32_t count, uint32_t lane) {
  auto* const tiles = reinterpret_cast<ScaleTiles*>(scales);
  ScaleWords words{};
#pragma unroll
  for (uint32_t word = 0; word < kScaleTileCols; ++word) {
    if (32 * word + lane >= count) continue;
    const uint32_t row = first + 32 * word + lane, in_tile = row % kScaleTileRows;
#pragma unroll
    for (int step = 0; step < kMmaSteps; ++step)
      words[step][word] = tiles[row / kScaleTileRows][step][in_tile % 32][in_tile / 32];
  }
  __syncwarp();  // all rows are read, and may be written
  blackwell::write_scales(words, lane, tiles[0]);
}

// Runs on: kArrangeWarps, `index` counts them, each for some stages.   Waits: sf_full[stage].
// Arrives: ab_full[stage] of the leader, also for scales that lie right.
template <Config kCfg>
DUALGEMM_DEVICE void arrange_tiles_of_groups(const Params& params,
                                             sm100a_pair::SharedStorage<kCfg>& smem,
                                             const Turns& turns, uint32_t index) {
  const uint32_t rank = ptx::cluster_cta_rank(), lane = threadIdx.x % 32;
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (Tiles tiles(params, turns);; tiles.advance()) {
    tiles.ask_for_next();
    const uint32_t count = CtaRows::of(tiles.rows(), rank).count;
    const uint32_t first = ScalesOfA::of(params, tiles.rows(), rank).first;
#pragma unroll 1
    for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
      if (ring.stage % Budget<kCfg>::kArrangeWarps != index) continue;
      auto& stage = smem.stages[ring.stage];
      ptx::mbarrier_wait_parity(&smem.sf_full[ring.stage], ring.round_parity);
      if (params.linear_gate) arrange_rows(stage.sf_gate, lane);
      if (params.linear_up) arrange_rows(stage.sf_up, lane);
      if (params.linear_a) {
        arrange_rows(stage.sf_a, lane);
      } else if (first != 0) {
        arrange_tiles(stage.sf_a, first, count, lane);
      }
      ptx::fence_proxy_async_shared();
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive_cluster(ptx::mapa(&smem.ab_full[ring.stage], 0));
    }
    if (tiles.is_last()) return;
  }
}

}  // namespace dualgemm::cuda::sm100a_pair_groups
