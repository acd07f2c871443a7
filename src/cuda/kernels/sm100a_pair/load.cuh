// The role that fills the ring. Part of dual_gemm.cuh, which has the tables.
#pragma once

namespace dualgemm::cuda::sm100a_pair {

// Until the stage's MMAs of the round before, of the other parity, are complete. Before the first
// round there were none, and a barrier lets that parity pass.
template <Config kCfg>
DUALGEMM_DEVICE void wait_until_empty(SharedStorage<kCfg>& smem,
                                      const RingPosition<SharedStorage<kCfg>::kStages>& ring,
                                      uint32_t k_tile) {
  if (kCfg.persistent || k_tile >= smem.kStages)
    ptx::mbarrier_wait_parity(&smem.ab_empty[ring.stage], ring.round_parity ^ 1);
}

// Runs on: one thread of kLoadWarp in each CTA.   Waits: the grid before, ab_empty[stage].
// Arrives: ab_full[stage] of the leader.
template <Config kCfg>
DUALGEMM_DEVICE void load_operands(const Params& params, SharedStorage<kCfg>& smem) {
  // Weights are read once per column of tiles, at about the same time; A by all columns.
  const ptx::CachePolicy keep = ptx::createpolicy_evict_last();
  const ptx::CachePolicy pass = ptx::createpolicy_evict_first();
  RingPosition<smem.kStages> ring;
  ptx::griddepcontrol_wait();
#pragma unroll 1
  for (Turns<kCfg> turns(params);; turns.advance()) {
    const Tile tile = turns.tile();
    const auto m_begin = static_cast<int32_t>(tile.m_begin);
    const auto weight_begin =
        static_cast<int32_t>(tile.n_begin + tile.rank * Budget<kCfg>::kWeightRows);
    const auto batch = static_cast<int32_t>(tile.batch);
    const int32_t n_scale_tile = static_cast<int32_t>(tile.n_begin) / kScaleTileRows;
    const int32_t m_scale_tile = m_begin / kScaleTileRows;
#pragma unroll 1
    for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
      Stage<kCfg>& stage = smem.stages[ring.stage];
      const uint32_t full = ptx::mapa(&smem.ab_full[ring.stage], 0);
      wait_until_empty(smem, ring, k_tile);
      ptx::mbarrier_arrive_expect_tx_cluster(full, sizeof(Stage<kCfg>));
      const auto k_byte = static_cast<int32_t>(k_tile * kRowBytes);
      const auto k_scale_tile = static_cast<int32_t>(k_tile * kMmaSteps);
      ptx::cp_async_bulk_tensor_3d_pair(stage.gate, &params.map_gate, k_byte, weight_begin, batch,
                                        full, pass);
      ptx::cp_async_bulk_tensor_3d_pair(stage.up, &params.map_up, k_byte, weight_begin, batch, full,
                                        pass);
      ptx::cp_async_bulk_tensor_4d_pair(stage.sf_gate, &params.map_sf_gate, 0, k_scale_tile,
                                        n_scale_tile, batch, full, pass);
      ptx::cp_async_bulk_tensor_4d_pair(stage.sf_up, &params.map_sf_up, 0, k_scale_tile,
                                        n_scale_tile, batch, full, pass);
      ptx::cp_async_bulk_tensor_3d_pair(stage.a, &params.map_a, k_byte, m_begin, batch, full, keep);
      ptx::cp_async_bulk_tensor_4d_pair(stage.sf_a, &params.map_sf_a, 0, k_scale_tile, m_scale_tile,
                                        batch, full, keep);
    }
    if (turns.is_last()) return;
  }
}

// Codes of both weights of one stage, and their scales, which are asked for first: they are
// arranged while the rest arrives. Both CTAs have the scales of all columns, and each loads half of
// them for both; the other one's may arrive before sf_full expects them, but not before its phase
// has begun, since the stage is free in both CTAs at once. What arrives includes A and its scales,
// load_a()'s.
template <Config kCfg>
DUALGEMM_DEVICE void load_units(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile,
                                uint32_t index, uint32_t k_tile, ptx::CachePolicy policy) {
  Stage<kCfg>& stage = smem.stages[index];
  const auto unit = static_cast<int32_t>(tile.n_begin / kUnitCols);
  const auto own_units = static_cast<int32_t>(tile.rank * Budget<kCfg>::kWeightRows / kUnitCols);
  const auto batch = static_cast<int32_t>(tile.batch);
  const uint32_t rows_of_a = params.linear_a ? sizeof(stage.sf_a) : 0;  // arranged, too
  ptx::mbarrier_arrive_expect_tx(&smem.sf_full[index],
                                 sizeof(stage.sf_weights.as_loaded) + rows_of_a);
  ptx::cp_async_bulk_tensor_4d_multicast(
      stage.sf_weights.as_loaded + own_units, &params.map_sf_gate, 0, unit + own_units,
      static_cast<int32_t>(k_tile), batch, &smem.sf_full[index], kBothCtas, policy);
  const uint32_t full = ptx::mapa(&smem.ab_full[index], 0);
  ptx::mbarrier_arrive_expect_tx_cluster(
      full, sizeof(stage.a) + sizeof(stage.codes) + sizeof(stage.sf_a) - rows_of_a);
  ptx::cp_async_bulk_tensor_4d_pair(stage.codes, &params.map_gate, 0, unit + own_units,
                                    static_cast<int32_t>(k_tile), batch, full, policy);
}

template <Config kCfg>
DUALGEMM_DEVICE void load_a(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile,
                            uint32_t index, uint32_t k_tile, ptx::CachePolicy policy) {
  Stage<kCfg>& stage = smem.stages[index];
  const uint32_t full = ptx::mapa(&smem.ab_full[index], 0);
  const auto m_begin = static_cast<int32_t>(tile.m_begin);
  const auto batch = static_cast<int32_t>(tile.batch);
  ptx::cp_async_bulk_tensor_3d_pair(stage.a, &params.map_a,
                                    static_cast<int32_t>(k_tile * kRowBytes), m_begin, batch, full,
                                    policy);
  if (params.linear_a) {
    ptx::cp_async_bulk_tensor_3d(stage.sf_a, &params.map_sf_a,
                                 static_cast<int32_t>(k_tile * kRowScaleBytes), m_begin, batch,
                                 &smem.sf_full[index], policy);
  } else {
    ptx::cp_async_bulk_tensor_4d_pair(stage.sf_a, &params.map_sf_a, 0,
                                      static_cast<int32_t>(k_tile * kMmaSteps),
                                      m_begin / kScaleTileRows, batch, full, policy);
  }
}

// Runs on: one thread of kLoadWarp in each CTA.   Waits: the grid before, but for weights;
// ab_empty[stage].   Arrives: sf_full[stage], ab_full[stage] of the leader.
template <Config kCfg>
DUALGEMM_DEVICE void load_prepared(const Params& params, SharedStorage<kCfg>& smem) {
  const ptx::CachePolicy keep = ptx::createpolicy_evict_last();
  const ptx::CachePolicy pass = ptx::createpolicy_evict_first();
  Turns<kCfg> turns(params);
  uint32_t early = min(params.num_k_tiles, static_cast<uint32_t>(kEarlyStages));
#pragma unroll 1
  for (uint32_t k_tile = 0; k_tile < early; ++k_tile)
    load_units(params, smem, turns.tile(), k_tile, k_tile, pass);
  ptx::griddepcontrol_wait();
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (;; turns.advance()) {
    const Tile tile = turns.tile();
#pragma unroll 1
    for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
      wait_until_empty(smem, ring, k_tile);
      if (k_tile >= early) load_units(params, smem, tile, ring.stage, k_tile, pass);
      load_a(params, smem, tile, ring.stage, k_tile, keep);
    }
    if (turns.is_last()) return;
    early = 0;
  }
}

}  // namespace dualgemm::cuda::sm100a_pair
