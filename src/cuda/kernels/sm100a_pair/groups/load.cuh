// The role that fills the ring. Part of dual_gemm.cuh, which has the tables.
#pragma once

namespace dualgemm::cuda::sm100a_pair_groups {

// Where a CTA's loads of a tile begin, but for k.
struct Origin {
  int32_t expert, batch;         // of the weights, of A
  int32_t n_begin, own_n_begin;  // of the pair's columns, of this CTA's half
  int32_t row, row_of_scales;    // of A, and of its scales as they lie
  bool two_scale_tiles;          // of A
};

DUALGEMM_DEVICE Origin origin_of(const Params& params, const Tiles& tiles, uint32_t rank) {
  const GroupTile& rows = tiles.rows();
  const ScalesOfA scales = ScalesOfA::of(params, rows, rank);
  const CtaRows own = CtaRows::of(rows, rank);
  // Without rows: m lies behind A's rows and behind as many scale tiles as they may have, so that
  // the TMA unit delivers zeros without reading memory. Scales that only offsets say are there are
  // not touched.
  const bool none = own.count == 0;
  const uint32_t row = none ? params.m : own.begin;
  return {.expert = static_cast<int32_t>(rows.expert),
          .batch = params.groups.one_batch ? 0 : static_cast<int32_t>(rows.expert),
          .n_begin = static_cast<int32_t>(tiles.n_begin()),
          .own_n_begin = static_cast<int32_t>(tiles.n_begin() + rank * kBoxCols),
          .row = static_cast<int32_t>(row),
          .row_of_scales = static_cast<int32_t>(params.linear_a || none ? row : scales.tile),
          .two_scale_tiles = !params.linear_a && scales.in_two};
}

// A weight's scales of all of the tile's columns: two boxes of rows of them, or a scale tile for
// each step.
DUALGEMM_DEVICE void load_weight_scales(const Params& params, uint8_t* to, const TensorMap& map,
                                        bool linear, uint32_t k_tile, const Origin& from,
                                        ptx::Barrier* full, ptx::CachePolicy policy) {
  if (!linear) {
    ptx::cp_async_bulk_tensor_4d(to, &map, 0, static_cast<int32_t>(k_tile * kMmaSteps),
                                 from.n_begin / kScaleTileRows, from.expert, full, policy);
    return;
  }
#pragma unroll
  for (int half = 0; half < kPairCtas; ++half) {
    uint8_t* const box = to + half * kBoxCols * kRowScaleBytes;
    const int32_t row = from.n_begin + half * kBoxCols;
    if (params.prepared) {
      ptx::cp_async_bulk_tensor_4d(box, &map, 0, row / blackwell::kUnitCols,
                                   static_cast<int32_t>(k_tile), from.expert, full, policy);
    } else {
      ptx::cp_async_bulk_tensor_3d(box, &map, static_cast<int32_t>(k_tile * kRowScaleBytes), row,
                                   from.expert, full, policy);
    }
  }
}

// A's, 128 rows of them, or one or two scale tiles for each step.
DUALGEMM_DEVICE void load_scales_of_a(const Params& params, uint8_t* to, uint32_t k_tile,
                                      const Origin& from, ptx::Barrier* full,
                                      ptx::CachePolicy policy) {
  if (params.linear_a) {
    ptx::cp_async_bulk_tensor_3d(to, &params.map_sf_a,
                                 static_cast<int32_t>(k_tile * kRowScaleBytes), from.row_of_scales,
                                 from.batch, full, policy);
    return;
  }
  const auto k_scale_tile = static_cast<int32_t>(k_tile * kMmaSteps);
  ptx::cp_async_bulk_tensor_4d(to, &params.map_sf_a, 0, k_scale_tile, from.row_of_scales,
                               from.batch, full, policy);
  if (from.two_scale_tiles) {
    ptx::cp_async_bulk_tensor_4d(to + kScaleBytes, &params.map_sf_a, 0, k_scale_tile,
                                 from.row_of_scales + 1, from.batch, full, policy);
  }
}

DUALGEMM_DEVICE void load_codes(const Params& params, uint8_t* to, const TensorMap& map,
                                uint32_t k_tile, const Origin& from, uint32_t full,
                                ptx::CachePolicy policy) {
  if (params.prepared) {
    ptx::cp_async_bulk_tensor_4d_pair(to, &map, 0, from.own_n_begin / blackwell::kUnitCols,
                                      static_cast<int32_t>(k_tile), from.expert, full, policy);
  } else {
    ptx::cp_async_bulk_tensor_3d_pair(to, &map, static_cast<int32_t>(k_tile * kRowBytes),
                                      from.own_n_begin, from.expert, full, policy);
  }
}

// Runs on: one thread of kLoadWarp in each CTA.   Waits: ab_empty[stage].   Arrives:
// sf_full[stage], ab_full[stage] of the leader. Scales first: they are arranged while the rest
// arrives.
template <Config kCfg>
DUALGEMM_DEVICE void load_tiles(const Params& params, sm100a_pair::SharedStorage<kCfg>& smem,
                                const Turns& turns) {
  const ptx::CachePolicy keep = ptx::createpolicy_evict_last();
  const ptx::CachePolicy pass = ptx::createpolicy_evict_first();
  const uint32_t rank = ptx::cluster_cta_rank();
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (Tiles tiles(params, turns);; tiles.advance()) {
    tiles.ask_for_next();
    const Origin from = origin_of(params, tiles, rank);
    const uint32_t scale_bytes = (from.two_scale_tiles ? 4 : 3) * kScaleBytes;
#pragma unroll 1
    for (uint32_t k_tile = 0; k_tile < params.num_k_tiles; ++k_tile, ring.advance()) {
      auto& stage = smem.stages[ring.stage];
      ptx::Barrier* const sf_full = &smem.sf_full[ring.stage];
      const uint32_t full = ptx::mapa(&smem.ab_full[ring.stage], 0);
      ptx::mbarrier_wait_parity(&smem.ab_empty[ring.stage], ring.round_parity ^ 1);
      ptx::mbarrier_arrive_expect_tx(sf_full, scale_bytes);
      load_weight_scales(params, stage.sf_gate, params.map_sf_gate, params.linear_gate, k_tile,
                         from, sf_full, pass);
      load_weight_scales(params, stage.sf_up, params.map_sf_up, params.linear_up, k_tile, from,
                         sf_full, pass);
      load_scales_of_a(params, stage.sf_a, k_tile, from, sf_full, keep);
      ptx::mbarrier_arrive_expect_tx_cluster(full, Budget<kCfg>::kOperandBytes);
      load_codes(params, stage.gate, params.map_gate, k_tile, from, full, pass);
      load_codes(params, stage.up, params.map_up, k_tile, from, full, pass);
      ptx::cp_async_bulk_tensor_3d_pair(stage.a, &params.map_a,
                                        static_cast<int32_t>(k_tile * kRowBytes), from.row,
                                        from.batch, full, keep);
    }
    if (tiles.is_last()) return;
  }
}

}  // namespace dualgemm::cuda::sm100a_pair_groups
