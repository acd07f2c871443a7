// The two roles that fill the rings. Part of dual_gemm.cuh, which has the tables.
#pragma once

namespace dualgemm::cuda::sm90a {

template <Config kCfg>
DUALGEMM_DEVICE void load_weight_stage(const Params& params, WeightStage<kCfg, true>& stage,
                                       ptx::Barrier* full, const Tile& tile, uint32_t k_tile,
                                       ptx::CachePolicy policy) {
  ptx::mbarrier_arrive_expect_tx(full, sizeof(stage.units));
  const uint32_t first = tile.n_begin / kUnitCols;
#pragma unroll
  for (uint32_t sub = 0; sub < kSubs; ++sub) {
    const uint8_t* const from = params.packed.unit(tile.batch, k_tile * kSubs + sub, first);
    if constexpr (kUnitMultiple % Budget<kCfg>::kUnits == 0) {
      ptx::cp_async_bulk(stage.units[sub], from, sizeof(stage.units[sub]), full, policy);
    } else {
      // The chunk's units may end before the tile's do. What is beyond is no column of D: the
      // chunk's first units stand in.
      constexpr uint32_t kBytes = sizeof(stage.units[sub]);
      static_assert(Budget<kCfg>::kUnits <= kUnitMultiple);
      const uint64_t before = uint64_t{first} * kUnitBytes;
      const uint64_t left = params.packed.chunk_bytes - before;
      const auto there = static_cast<uint32_t>(left < kBytes ? left : kBytes);
      ptx::cp_async_bulk(stage.units[sub], from, there, full, policy);
      if (there < kBytes)
        ptx::cp_async_bulk(reinterpret_cast<uint8_t*>(stage.units[sub]) + there, from - before,
                           kBytes - there, full, policy);
    }
  }
}

// The tensor maps of both weights, or of the halves of one.
struct WeightMaps {
  const TensorMap *gate, *up, *sf_gate, *sf_up;
};

// pass: 0, or of sequential instances 1 for Up.
DUALGEMM_DEVICE WeightMaps maps_of(const Params& params, uint32_t) {
  return {&params.map_gate, &params.map_up, &params.map_sf_gate, &params.map_sf_up};
}
DUALGEMM_DEVICE WeightMaps maps_of(const SequentialParams& params, uint32_t pass) {
  if (pass == 0) return maps_of(static_cast<const Params&>(params), 0);
  return {&params.map_up_first, &params.map_up_second, &params.map_sf_up_first,
          &params.map_sf_up_second};
}

template <Config kCfg>
DUALGEMM_DEVICE void load_weight_stage(const Params& params, const WeightMaps& maps,
                                       WeightStage<kCfg, false>& stage, ptx::Barrier* full,
                                       const Tile& tile, uint32_t k_tile, ptx::CachePolicy policy) {
  const auto n_begin = static_cast<int32_t>(tile.n_begin);
  const auto batch = static_cast<int32_t>(tile.batch);
  const auto k_byte = static_cast<int32_t>(k_tile * kRowBytes);
  constexpr uint32_t kLinearBytes = 2 * Budget<kCfg>::kTileN * kScaleRowBytes;
  ptx::mbarrier_arrive_expect_tx(
      full, Budget<kCfg>::kCodeBytes +
                (params.linear_scales ? kLinearBytes : 2 * Budget<kCfg>::kSwizzledBytes));
  ptx::cp_async_bulk_tensor_3d(stage.gate, maps.gate, k_byte, n_begin, batch, full, policy);
  ptx::cp_async_bulk_tensor_3d(stage.up, maps.up, k_byte, n_begin, batch, full, policy);
  if (params.linear_scales) {
    const auto col = static_cast<int32_t>(k_tile * kScaleRowBytes);
    ptx::cp_async_bulk_tensor_3d(stage.sf_gate, maps.sf_gate, col, n_begin, batch, full, policy);
    ptx::cp_async_bulk_tensor_3d(stage.sf_up, maps.sf_up, col, n_begin, batch, full, policy);
  } else {
    const auto scale_tile = static_cast<int32_t>(k_tile * kScaleTiles);
    ptx::cp_async_bulk_tensor_4d(stage.sf_gate, maps.sf_gate, 0, scale_tile, n_begin / 128, batch,
                                 full, policy);
    ptx::cp_async_bulk_tensor_4d(stage.sf_up, maps.sf_up, 0, scale_tile, n_begin / 128, batch, full,
                                 policy);
  }
}

// Runs on: one thread.   Waits: w_empty[stage].   Arrives: w_full[stage]. Does not wait for the
// prepare kernel (of groups, all threads have): nothing before this call in the stream is still at
// work on the weights.
template <Config kCfg>
DUALGEMM_DEVICE void load_weights(const ParamsOf<kCfg>& params, SharedStorage<kCfg>& smem) {
  constexpr int kStages = Budget<kCfg>::kWeightStages;
  // Read once if there is one tile of rows; else every tile of rows reads them again.
  const ptx::CachePolicy policy =
      params.tiles_m.value == 1 ? ptx::createpolicy_evict_first() : ptx::createpolicy_evict_last();
  RingPosition<kStages> ring;
  uint32_t filled = 0;
  TileScheduler scheduler(schedule_of<kCfg>(params, smem));
#pragma unroll 1
  for (Segment segment; scheduler.next(segment);) {
    const Tile tile = locate<kCfg>(params, segment.tile);
#pragma unroll 1
    for (uint32_t pass = 0; pass < kPasses<kCfg>; ++pass) {
#pragma unroll 1
      for (uint32_t k_tile = segment.k_begin; k_tile < segment.k_end; ++k_tile, ring.advance()) {
        if (filled >= kStages) {
          ptx::mbarrier_wait_parity(&smem.w_empty[ring.stage], ring.round_parity ^ 1);
        } else {
          ++filled;
        }
        WeightStage<kCfg>& stage = smem.weights[ring.stage];
        ptx::Barrier* const full = &smem.w_full[ring.stage];
        if constexpr (kCfg.prepared) {
          load_weight_stage<kCfg>(params, stage, full, tile, k_tile, policy);
        } else {
          load_weight_stage<kCfg>(params, maps_of(params, pass), stage, full, tile, k_tile, policy);
        }
      }
    }
  }
}

// Runs on: one thread.   Waits: the prepare kernel, a_empty[stage].   Arrives: a_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void load_activations(const Params& params, SharedStorage<kCfg>& smem) {
  using B = Budget<kCfg>;
  const ptx::CachePolicy policy = ptx::createpolicy_evict_last();
  RingPosition<B::kActStages> ring;
  uint32_t filled = 0;
  TileScheduler scheduler(schedule_of<kCfg>(params, smem));
#pragma unroll 1
  for (Segment segment; scheduler.next(segment);) {
    const Tile tile = locate<kCfg>(params, segment.tile);
    const uint32_t a_batch = kCfg.grouped && params.groups.one_batch ? 0 : tile.batch;
    ptx::griddepcontrol_wait();  // once: it is passed at once from then on
#pragma unroll 1
    for (uint32_t pass = 0; pass < kPasses<kCfg>; ++pass) {
#pragma unroll 1
      for (uint32_t sub = segment.k_begin * kSubs; sub < segment.k_end * kSubs;
           sub += B::kActSubs, ring.advance()) {
        if (filled >= B::kActStages) {
          ptx::mbarrier_wait_parity(&smem.a_empty[ring.stage], ring.round_parity ^ 1);
        } else {
          ++filled;
        }
        ptx::Barrier* const full = &smem.a_full[ring.stage];
        ptx::mbarrier_arrive_expect_tx(full, B::kActBytes);
        ptx::cp_async_bulk_tensor_4d(smem.a[ring.stage], &params.map_a, 0,
                                     static_cast<int32_t>(tile.m_begin), static_cast<int32_t>(sub),
                                     static_cast<int32_t>(a_batch), full, policy);
      }
    }
  }
}

}  // namespace dualgemm::cuda::sm90a
