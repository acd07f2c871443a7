// The two roles that fill A's ring where rows of A are found by index. Part of dual_gemm.cuh, which
// has the tables.
#pragma once

#include "cuda/ptx/cp_async.cuh"
#include "cuda/ptx/proxy_fence.cuh"

namespace dualgemm::cuda::sm90a {

// One warp's copies of rows into the ring: four rows at a time, eight lanes a row of 128 bytes,
// those of quads warp, warp + kGatherWarps, ... of a tile.
template <Config kCfg>
struct Gatherer {
  using B = Budget<kCfg>;
  static constexpr uint32_t kQuads = kCfg.tile_m / 4 / kGatherWarps;
  static constexpr uint32_t kLanes = 8;  // of a row
  static_assert(kQuads % kLanes == 0, "a lane holds whole numbers of rows");
  static constexpr uint32_t kHeld = kQuads / kLanes;
  // Copies whose addresses a lane has at a time. One after the other, each waited for a shuffle,
  // for the addition and until the copy before had read its address: Mixtral's 1024 tokens 1170 us,
  // in fours 921, by the TMA unit from copied rows 843. 16 offsets in registers, without shuffles:
  // 937, as ptxas makes all addresses in one pair of registers again.
  static constexpr uint32_t kAtOnce = 4;

  uint32_t warp;         // of the kGatherWarps
  uint32_t rows[kHeld];  // lane p of the eight of row r: where rows r of quads p, p + 8, ... begin

  DUALGEMM_DEVICE void find_rows(const Params& params, const Tile& tile) {
    const uint32_t row = threadIdx.x % 32 / kLanes, lane = threadIdx.x % kLanes;
#pragma unroll
    for (uint32_t i = 0; i < kHeld; ++i) {
      const uint32_t quad = warp + kGatherWarps * (kLanes * i + lane);
      // Behind the tile's end stand rows of the next expert, or whatever: no row of D.
      rows[i] = params.row_index(min(tile.m_begin + 4 * quad + row, params.m - 1)) * kRowBytes;
    }
  }

  // Sub-tiles sub .. sub + kActSubs-1 of the tile's rows.
  DUALGEMM_DEVICE void copy(const Params& params, uint32_t sub, uint8_t* stage,
                            ptx::CachePolicy policy) const {
    const uint32_t row = threadIdx.x % 32 / kLanes, piece = threadIdx.x % kLanes;
    const uint64_t sub_bytes = static_cast<uint64_t>(params.row_index.rows) * kRowBytes;
    const uint8_t* from = params.activations + sub * sub_bytes;
    // 128-byte swizzle: piece p of row r lies at p ^ (r % 8).
    static_assert(kGatherWarps == 2, "a warp's quads are rows 0-3 of eight, or rows 4-7");
    const uint32_t in_tile = 4 * warp + row;
    uint32_t to = ptx::shared_address(stage) + in_tile * kRowBytes + (piece ^ (in_tile % 8)) * 16;
#pragma unroll 1
    for (uint32_t s = 0; s < B::kActSubs; ++s) {
#pragma unroll
      for (uint32_t first = 0; first < kQuads; first += kAtOnce) {
        uint32_t offsets[kAtOnce];
#pragma unroll
        for (uint32_t i = 0; i < kAtOnce; ++i) {
          const uint32_t held = rows[first / kLanes];
          offsets[i] = __shfl_sync(0xFFFFFFFFu, held, first % kLanes + i, kLanes) + piece * 16;
        }
#pragma unroll
        for (uint32_t i = 0; i < kAtOnce; ++i) {
          ptx::cp_async_16_kept(to + (first + i) * kGatherWarps * 4 * kRowBytes, from + offsets[i],
                                policy);
        }
      }
      from += sub_bytes;
      to += kCfg.tile_m * kRowBytes;
    }
  }
};

// Runs on: kGatherWarps warps.   Waits: a_empty[stage].   Arrives: a_copied[stage], each thread,
// when what it copies is there.
template <Config kCfg>
DUALGEMM_DEVICE void gather_activations(const Params& params, SharedStorage<kCfg>& smem,
                                        uint32_t warp) {
  using B = Budget<kCfg>;
  Gatherer<kCfg> gatherer{.warp = warp, .rows = {}};
  const ptx::CachePolicy policy = ptx::createpolicy_evict_last();
  RingPosition<B::kActStages> ring;
  uint32_t filled = 0;
  TileScheduler scheduler(schedule_of<kCfg>(params, smem));
#pragma unroll 1
  for (Segment segment; scheduler.next(segment);) {
    gatherer.find_rows(params, locate<kCfg>(params, segment.tile));
#pragma unroll 1
    for (uint32_t sub = segment.k_begin * kSubs; sub < segment.k_end * kSubs;
         sub += B::kActSubs, ring.advance()) {
      if (filled >= B::kActStages) {
        ptx::mbarrier_wait_parity(&smem.a_empty[ring.stage], ring.round_parity ^ 1);
      } else {
        ++filled;
      }
      gatherer.copy(params, sub, smem.a[ring.stage], policy);
      ptx::cp_async_mbarrier_arrive(&smem.a_copied[ring.stage]);
    }
  }
}

// Hands what was copied over to wgmma, which reads through the asynchronous proxy. By a thread that
// copies nothing: with fences by the warps that copy, three of them, two stages in flight,
// Mixtral's 1024 tokens took 952 us for 921.
// Runs on: one thread.   Waits: a_copied[stage].   Arrives: a_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void hand_over_activations(const Params& params, SharedStorage<kCfg>& smem) {
  using B = Budget<kCfg>;
  RingPosition<B::kActStages> ring;
  TileScheduler scheduler(schedule_of<kCfg>(params, smem));
#pragma unroll 1
  for (Segment segment; scheduler.next(segment);) {
    const uint32_t stages = (segment.k_end - segment.k_begin) * B::kActStagesPerTile;
#pragma unroll 1
    for (uint32_t i = 0; i < stages; ++i, ring.advance()) {
      ptx::mbarrier_wait_parity(&smem.a_copied[ring.stage], ring.round_parity);
      ptx::fence_proxy_async_shared();
      ptx::mbarrier_arrive(&smem.a_full[ring.stage]);
    }
  }
}

}  // namespace dualgemm::cuda::sm90a
