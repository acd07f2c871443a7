// The consumer warpgroups' main loop. Part of dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/kernels/hopper/decode.cuh"
#include "cuda/kernels/sm90a/epilogue.cuh"
#include "cuda/ptx/wgmma.cuh"

namespace dualgemm::cuda::sm90a {

// K-major rows of 128 bytes, 128-byte swizzle: address >> 4 in bits 0-13, 16 bytes >> 4 (not read)
// in 16-29; 8 rows' 1024 bytes >> 4 in bits 32-45, mode 1 in bits 62-63. PTX ISA 9.0, "wgmma matrix
// descriptor". A step along k is an addition to the low word.
DUALGEMM_DEVICE uint32_t descriptor_low(const uint8_t* rows) {
  return 1u << 16 | (ptx::shared_address(rows) & 0x3FFFF) >> 4;
}
inline constexpr uint32_t kDescriptorHigh = 1u << 30 | 1024 >> 4;

// Where a thread finds its rows of a stage.
struct RowPlace {
  uint32_t codes;   // its first 16 bytes (of Gate; prepared: 8 of Gate, 8 of Up)
  uint32_t scales;  // of four scales of Gate (prepared: one of Gate, one of Up)
};

template <Config kCfg>
DUALGEMM_DEVICE RowPlace place_of_thread(bool linear_scales, uint32_t group, uint32_t n_begin) {
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  if constexpr (kCfg.prepared) {
    const uint32_t unit = (group * 4 + warp) * kUnitBytes;
    return {unit + lane * 16,
            unit + static_cast<uint32_t>(offsetof(PackedUnit, scales)) + lane * 2};
  }
  const uint32_t row = group * kWarpgroupCols + warp * 8 + lane / 4, q = lane % 4;
  const uint32_t scale_row = n_begin % 128 + row, tile_row = scale_row % 128;
  uint32_t swizzled = q * kScaleTileBytes + tile_row % 32 * 16 + tile_row / 32 * 4;
  if constexpr (Budget<kCfg>::kScaleTileRows > 1)
    swizzled += scale_row / 128 * (kScaleTiles * kScaleTileBytes);
  const uint32_t linear = row * kScaleRowBytes + q * 4;
  return {row * kRowBytes + ((2 * q) ^ (row % 8)) * 16, linear_scales ? linear : swizzled};
}

// A k-tile of weights on its way through a thread: 16 bytes of each row and all of its scales.
struct RawTile {
  uint32_t gate[4], up[4];
  uint32_t gate_scales[4], up_scales[4];
};

DUALGEMM_DEVICE void load_codes(const uint8_t* from, uint32_t (&to)[4]) {
  const uint4 words = *reinterpret_cast<const uint4*>(from);
  to[0] = words.x, to[1] = words.y, to[2] = words.z, to[3] = words.w;
}

// `place` in sub-tile `sub` of prepared weights.
template <Config kCfg>
DUALGEMM_DEVICE const uint8_t* packed_at(const WeightStage<kCfg>& stage, uint32_t sub,
                                         uint32_t place) {
  return reinterpret_cast<const uint8_t*>(stage.units[sub]) + place;
}

template <Config kCfg>
DUALGEMM_DEVICE void load_half(const WeightStage<kCfg>& stage, uint32_t codes, uint32_t half,
                               RawTile& raw) {
  if constexpr (kCfg.prepared) {
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      uint32_t words[4];
      load_codes(packed_at<kCfg>(stage, 2 * half + i, codes), words);
      raw.gate[2 * i] = words[0], raw.gate[2 * i + 1] = words[1];
      raw.up[2 * i] = words[2], raw.up[2 * i + 1] = words[3];
    }
  } else {
    load_codes(stage.gate + (codes ^ half * 16), raw.gate);
    load_codes(stage.up + (codes ^ half * 16), raw.up);
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void load_scales(const WeightStage<kCfg>& stage, uint32_t place, RawTile& raw) {
  if constexpr (kCfg.prepared) {
#pragma unroll
    for (uint32_t sub = 0; sub < kSubs; ++sub) {
      hopper::expand_pair<kCfg.bf16>(
          *reinterpret_cast<const uint16_t*>(packed_at<kCfg>(stage, sub, place)) & 0x7F7Fu,
          raw.gate_scales[sub], raw.up_scales[sub]);
    }
  } else {
    hopper::expand_scales<kCfg.bf16>(*reinterpret_cast<const uint32_t*>(stage.sf_gate + place),
                                     raw.gate_scales);
    hopper::expand_scales<kCfg.bf16>(*reinterpret_cast<const uint32_t*>(stage.sf_up + place),
                                     raw.up_scales);
  }
}

// The operands of a sub-tile's four MMAs.
template <Config kCfg, int kSub>
DUALGEMM_DEVICE void decode_sub(const hopper::Shifts& shifts, const RawTile& raw,
                                uint32_t (&fragments)[kSteps][4]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int word = 2 * (kSub % 2) + i;
    hopper::decode_words<kCfg.bf16, kCfg.prepared>(shifts, raw.gate[word], raw.up[word],
                                                   raw.gate_scales[kSub], raw.up_scales[kSub],
                                                   fragments[2 * i], fragments[2 * i + 1]);
  }
}

// One consumer warpgroup's state between tiles.
template <Config kCfg>
struct Consumer {
  using B = Budget<kCfg>;
  static constexpr uint32_t kNone = ~0u;
  SharedStorage<kCfg>& smem;
  hopper::Shifts shifts;
  uint32_t group, k_warpgroup;             // this one's numbers along n and k
  RingPosition<B::kWeightStages> weights;  // of the next k-tile
  RingPosition<B::kActTiles> acts;         // of that k-tile's A
  uint32_t rows;                           // the descriptor's low word for that k-tile's A
  uint32_t held;                           // stage of A that the k-tile before ended with; kNone
  uint32_t ordinal;                        // of the CTA's k-tile that comes next

  DUALGEMM_DEVICE void arrive(ptx::Barrier* bar) const {
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(bar);
  }

  DUALGEMM_DEVICE void begin_k_tile(const RowPlace& place, RawTile& raw) {
    ptx::mbarrier_wait_parity(&smem.w_full[weights.stage], weights.round_parity);
    const WeightStage<kCfg>& stage = smem.weights[weights.stage];
    load_half<kCfg>(stage, place.codes, 0, raw);
    load_scales<kCfg>(stage, place.scales, raw);
  }

  DUALGEMM_DEVICE void load_second_half(const RowPlace& place, RawTile& raw) const {
    load_half<kCfg>(smem.weights[weights.stage], place.codes, 1, raw);
  }

  // When the words of the second half have been used, so that they are known to have arrived: an
  // arrival does not wait for loads that are under way.
  DUALGEMM_DEVICE void release_k_tile() {
    __syncwarp();
    arrive(&smem.w_empty[weights.stage]);
    weights.template skip<kCfg.k_warpgroups>();
  }

  // Enqueues the MMAs of sub-tile kSub; those before it are then complete and their A is released.
  // Stages and descriptors are constants from the k-tile's first on: the chain of uniform
  // instructions that a ring of sub-tiles needs stood in the way of the MMAs.
  template <int kSub>
  DUALGEMM_DEVICE void multiply(const uint32_t (&fragments)[kSteps][4],
                                float (&acc)[kCfg.tile_m / 2]) {
    constexpr bool kBeginsStage = kSub % B::kActSubs == 0;
    constexpr uint32_t kSubStep = kCfg.tile_m * kRowBytes >> 4, kStep = 2 * kMmaK >> 4;
    const uint32_t stage = acts.stage * B::kActStagesPerTile + kSub / B::kActSubs;
    if constexpr (kBeginsStage) ptx::mbarrier_wait_parity(&smem.a_full[stage], acts.round_parity);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      ptx::wgmma_m64k16<kCfg.bf16, kCfg.tile_m, kDescriptorHigh>(
          acc, fragments[step], rows + kSub * kSubStep + step * kStep);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();
    if constexpr (kSub == 0) {
      if (held != kNone) arrive(&smem.a_empty[held]);
    } else if constexpr (kBeginsStage) {
      arrive(&smem.a_empty[stage - 1]);
    }
    if constexpr (kSub == kSubs - 1) held = stage;
  }

  DUALGEMM_DEVICE void begin_activations() {
    rows = __shfl_sync(0xFFFFFFFFu, descriptor_low(smem.a[acts.stage * B::kActStagesPerTile]), 0);
  }

  // acc = this k-warpgroup's part of the segment.
  DUALGEMM_DEVICE void accumulate(const Segment& segment, const RowPlace& place,
                                  float (&acc)[kCfg.tile_m / 2]) {
#pragma unroll
    for (float& value : acc) value = 0.0f;
    const uint32_t k_tiles = segment.k_end - segment.k_begin;
    // The CTA's k-tiles go to the k-warpgroups in turn.
    const uint32_t first =
        (k_warpgroup + kCfg.k_warpgroups - ordinal % kCfg.k_warpgroups) % kCfg.k_warpgroups;
    ordinal += k_tiles;
    if (first >= k_tiles) return;
    uint32_t fragments[2][kSteps][4];
    RawTile raw;
    begin_k_tile(place, raw);
    decode_sub<kCfg, 0>(shifts, raw, fragments[0]);
#pragma unroll 1
    for (uint32_t k_tile = first; k_tile < k_tiles; k_tile += kCfg.k_warpgroups) {
      begin_activations();
      multiply<0>(fragments[0], acc);
      decode_sub<kCfg, 1>(shifts, raw, fragments[1]);
      load_second_half(place, raw);
      multiply<1>(fragments[1], acc);
      decode_sub<kCfg, 2>(shifts, raw, fragments[0]);
      multiply<2>(fragments[0], acc);
      decode_sub<kCfg, 3>(shifts, raw, fragments[1]);
      release_k_tile();
      multiply<3>(fragments[1], acc);
      acts.template skip<kCfg.k_warpgroups>();
      if (k_tile + kCfg.k_warpgroups < k_tiles) {
        begin_k_tile(place, raw);
        decode_sub<kCfg, 0>(shifts, raw, fragments[0]);
      }
    }
    ptx::wgmma_wait_group<0>();
    ptx::pin_registers(acc);
    arrive(&smem.a_empty[held]);
    held = kNone;
  }
};

// Runs on: the consumer warpgroups.   Waits: w_full, a_full.   Arrives: w_empty, a_empty.
template <Config kCfg>
DUALGEMM_DEVICE void consume(const Params& params, SharedStorage<kCfg>& smem, uint32_t warp) {
  const uint32_t warpgroup = warp / 4;
  const uint32_t k_warpgroup = warpgroup / kCfg.n_warpgroups,
                 group = warpgroup - k_warpgroup * kCfg.n_warpgroups;
  // The widest tiles wait for the tensor cores: 1 to 2 % slower with products. With groups, 64 rows
  // of fp16 with unpacked weights have no registers for them.
  constexpr bool kProducts =
      kCfg.tile_m <= 128 && !(kCfg.grouped && !kCfg.prepared && !kCfg.bf16 && kCfg.tile_m == 64);
  Consumer<kCfg> consumer{.smem = smem,
                          .shifts = kProducts ? params.shifts : hopper::Shifts{},
                          .group = group,
                          .k_warpgroup = k_warpgroup,
                          .weights = {k_warpgroup, 0},
                          .acts = {k_warpgroup, 0},
                          .rows = 0,
                          .held = Consumer<kCfg>::kNone,
                          .ordinal = 0};
  TileScheduler scheduler(schedule_of<kCfg>(params, smem));
#pragma unroll 1
  for (Segment segment; scheduler.next(segment);) {
    const Tile tile = locate<kCfg>(params, segment.tile);
    float acc[kCfg.tile_m / 2];
    const RowPlace place = place_of_thread<kCfg>(params.linear_scales, group, tile.n_begin);
    consumer.accumulate(segment, place, acc);
    if constexpr (kCfg.sequential) {
      float up[kCfg.tile_m / 2];
      consumer.accumulate(segment, place, up);
      finish_sequential<kCfg>(params, smem, segment, tile, group, acc, up);
    } else {
      finish_segment<kCfg>(params, smem, segment, tile, group, k_warpgroup, acc);
    }
  }
}

}  // namespace dualgemm::cuda::sm90a
