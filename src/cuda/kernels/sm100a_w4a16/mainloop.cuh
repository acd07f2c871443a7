// From global memory to the accumulator: four roles in the order of the data flow. Part of
// dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/kernels/blackwell/packed_unit.hpp"
#include "cuda/kernels/sm100a_w4a16/decode.cuh"
#include "cuda/ptx/tcgen05_f16.cuh"

namespace dualgemm::cuda::sm100a_w4a16 {

// By one thread: a stage's rows of both weights and their scales.
template <Config kCfg>
DUALGEMM_DEVICE void load_stage_of_weights(const Params& params, Stage<kCfg>& stage,
                                           const Tile& tile, uint32_t k_tile, ptx::Barrier* full,
                                           ptx::CachePolicy policy) {
  const auto k = static_cast<int32_t>(k_tile), n_begin = static_cast<int32_t>(tile.n_begin);
  const auto batch = static_cast<int32_t>(tile.batch);
  uint8_t *const gate = stage.weights, *const up = gate + kTileN * kRowBytes;
  // Coordinates of scales: rows of a unit, or scale tiles.
  int32_t c1 = k * kScaleSteps, c2 = n_begin / kScaleTileRows;
  if (params.prepared) {
    c1 = n_begin / blackwell::kUnitCols, c2 = k;
    ptx::cp_async_bulk_tensor_4d(gate, &params.map_gate, 0, c1, c2, batch, full, policy);
    ptx::cp_async_bulk_tensor_4d(up, &params.map_up, 0, c1, c2, batch, full, policy);
  } else {
    const int32_t k_byte = k * kRowBytes;
    ptx::cp_async_bulk_tensor_3d(gate, &params.map_gate, k_byte, n_begin, batch, full, policy);
    ptx::cp_async_bulk_tensor_3d(up, &params.map_up, k_byte, n_begin, batch, full, policy);
  }
  const auto load_scales = [&](StageScales& to, const TensorMap& map, bool linear) {
    if (kCfg.grouped && linear && !params.prepared) {
      ptx::cp_async_bulk_tensor_3d(to, &map, k * kRowScaleBytes, n_begin, batch, full, policy);
    } else {
      ptx::cp_async_bulk_tensor_4d(to, &map, 0, c1, c2, batch, full, policy);
    }
  };
  load_scales(stage.scales[0], params.map_sf_gate, params.linear_gate);
  load_scales(stage.scales[1], params.map_sf_up, params.linear_up);
}

// Bytes of a stage's rows of both weights and their scales.
template <Config kCfg>
DUALGEMM_DEVICE uint32_t weight_bytes(const Params& params) {
  const auto scales = [](bool linear) -> uint32_t {
    return linear ? kTileN * kRowScaleBytes : Budget<kCfg>::kScaleBytes;
  };
  return Budget<kCfg>::kWeightBytes + scales(params.linear_gate) + scales(params.linear_up);
}

// The tiles of k of one loading thread: load(stage number, k-tile) when the stage is free.
template <Config kCfg, class Load>
DUALGEMM_DEVICE void fill_ring(SharedStorage<kCfg>& smem, const Tile& tile, const Load& load) {
  RingPosition<smem.kStages> ring;
#pragma unroll 1
  for (uint32_t step = 0; step < tile.num_k_tiles; ++step, ring.advance()) {
    if (step >= smem.kStages) {  // the stage was used in the round before, of the other parity
      ptx::mbarrier_wait_parity(&smem.empty[ring.stage], ring.round_parity ^ 1);
    }
    load(ring.stage, tile.k_begin + step);
  }
}

// By one thread: a stage's rows of A.
template <Config kCfg>
DUALGEMM_DEVICE void load_stage_of_a(const Params& params, SharedStorage<kCfg>& smem,
                                     const Tile& tile, uint32_t index, uint32_t k_tile,
                                     ptx::CachePolicy policy) {
  Stage<kCfg>& stage = smem.stages[index];
  ptx::Barrier* const full = &smem.a_full[index];
  ptx::mbarrier_arrive_expect_tx(full, sizeof(stage.a));
#pragma unroll
  for (int part = 0; part < kRowsOfA; ++part) {
    ptx::cp_async_bulk_tensor_3d(
        stage.a[part], &params.map_a, static_cast<int32_t>((k_tile * kRowsOfA + part) * kRowBytes),
        static_cast<int32_t>(tile.m_begin), static_cast<int32_t>(tile.a_batch), full, policy);
  }
}

// Runs on: one thread of kLoadWarp.   Waits: the grid before, but for prepared weights;
// empty[stage].   Arrives: codes_full[stage], a_full[stage]. Prepared weights are all that it
// loads: A, which waits, has load_a(). With one thread for both A comes in turn with the weights.
template <Config kCfg>
DUALGEMM_DEVICE void load_operands(const Params& params, SharedStorage<kCfg>& smem,
                                   const Tile& tile) {
  // Weights are read by one CTA, or by few that follow each other; A by all columns of tiles.
  const ptx::CachePolicy keep = ptx::createpolicy_evict_last();
  const ptx::CachePolicy pass = ptx::createpolicy_evict_first();
  const uint32_t bytes = weight_bytes<kCfg>(params);
  if (!params.prepared) ptx::griddepcontrol_wait();
  fill_ring(smem, tile, [&](uint32_t index, uint32_t k_tile) {
    ptx::Barrier* const full = &smem.codes_full[index];
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    load_stage_of_weights(params, smem.stages[index], tile, k_tile, full, pass);
    if (!params.prepared) load_stage_of_a(params, smem, tile, index, k_tile, keep);
  });
}

// Runs on: one thread of kLoadAWarp, with prepared weights.   Waits: the grid before, empty[stage].
// Arrives: a_full[stage].
template <Config kCfg>
DUALGEMM_DEVICE void load_a(const Params& params, SharedStorage<kCfg>& smem, const Tile& tile) {
  const ptx::CachePolicy keep = ptx::createpolicy_evict_last();
  ptx::griddepcontrol_wait();
  fill_ring(smem, tile, [&](uint32_t index, uint32_t k_tile) {
    load_stage_of_a(params, smem, tile, index, k_tile, keep);
  });
}

// Where a thread finds its row of every stage, and where it writes it.
struct DecoderRow {
  uint32_t group;       // of decoders: its part of a stage's k
  uint32_t row;         // of the MMA's A
  uint32_t product;     // 0: Gate, 1: Up
  uint32_t scales;      // first word of its own in the product's scales
  uint32_t scale_step;  // words from one step along k to the next one's
  uint32_t tmem;        // the group's first slot, with the lanes of this warp
};

// Scales lie in scale tiles or in rows. `first_slot`: of TMEM.
DUALGEMM_DEVICE DecoderRow row_of_decoder(const Params& params, uint32_t n_begin,
                                          uint32_t first_slot, uint32_t warp) {
  const uint32_t group = warp / kGroupWarps, quarter = warp % kGroupWarps;
  const uint32_t row = 32 * quarter + threadIdx.x % 32, product = quarter / 2;
  const bool in_rows = product == 0 ? params.linear_gate : params.linear_up;
  const uint32_t word = n_begin % kScaleTileRows / 32 + quarter % 2;  // of a scale tile's row
  return {group,
          row,
          product,
          in_rows ? row % kTileN * kScaleSteps : row % 32 * kScaleTileCols + word,
          in_rows ? 1u : kScaleTileBytes / 4u,
          first_slot + group * kSlots * kSlotCols + (32 * quarter << 16)};
}

// 16-byte chunk `chunk` of the row's 128 bytes: 32 codes.
DUALGEMM_DEVICE uint4 load_codes(const uint8_t* weights, uint32_t row, uint32_t chunk) {
  const uint32_t swizzled = chunk ^ row % 8;
  return *reinterpret_cast<const uint4*>(weights + row * kRowBytes + swizzled * 16);
}

// By a warp of decoders: a stage to a slot, for which it waits if another stage's weights were
// there.
template <Config kCfg>
DUALGEMM_DEVICE void decode_stage(SharedStorage<kCfg>& smem, const DecoderRow& mine,
                                  const RingPosition<SharedStorage<kCfg>::kStages>& ring,
                                  const RingPosition<kSlots>& slots, bool was_used) {
  ptx::mbarrier_wait_parity(&smem.codes_full[ring.stage], ring.round_parity);
  const Stage<kCfg>& stage = smem.stages[ring.stage];
  uint32_t scales[kDecoderSteps];
  uint4 codes[kDecoderSteps][2];
#pragma unroll
  for (uint32_t i = 0; i < kDecoderSteps; ++i) {
    const uint32_t at = mine.group * kDecoderSteps + i;
    scales[i] = stage.scales[mine.product][mine.scales + at * mine.scale_step];
    codes[i][0] = load_codes(stage.weights, mine.row, 2 * at);
    codes[i][1] = load_codes(stage.weights, mine.row, 2 * at + 1);
  }
  if (was_used) {
    ptx::mbarrier_wait_parity(&smem.w_empty[mine.group][slots.stage], slots.round_parity ^ 1);
  }
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
  const uint32_t to = mine.tmem + slots.stage * kSlotCols;
#pragma unroll
  for (int i = 0; i < kDecoderSteps; ++i) {
    uint32_t pairs[32], scale[4];
    expand_scales<kCfg.bf16>(scales[i], scale);
    const uint32_t words[8] = {codes[i][0].x, codes[i][0].y, codes[i][0].z, codes[i][0].w,
                               codes[i][1].x, codes[i][1].y, codes[i][1].z, codes[i][1].w};
#pragma unroll
    for (int word = 0; word < 8; ++word)
      decode_word<kCfg.bf16>(words[word], scale[word / 2], pairs + 4 * word);
    ptx::tcgen05_st_32x32b(to + 32 * i, pairs);
  }
  ptx::tcgen05_wait_st();
  ptx::tcgen05_fence_before_thread_sync();
  __syncwarp();
  if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&smem.w_full[mine.group][slots.stage]);
}

// Runs on: warps 0 .. kWorkWarps-1.   Waits: codes_full[stage], w_empty[group][slot].   Arrives:
// w_full[group][slot].
template <Config kCfg>
DUALGEMM_DEVICE void decode_weights(const Params& params, SharedStorage<kCfg>& smem,
                                    const Tile& tile, uint32_t tmem_base, uint32_t warp) {
  const DecoderRow mine =
      row_of_decoder(params, tile.n_begin, tmem_base + Budget<kCfg>::kSlotCol, warp);
  RingPosition<smem.kStages> ring;
  RingPosition<kSlots> slots;
#pragma unroll 1
  for (uint32_t step = 0; step < tile.num_k_tiles; ++step, ring.advance(), slots.advance())
    decode_stage(smem, mine, ring, slots, step >= kSlots);
}

// By one thread: a stage's MMAs, into the accumulator at `acc`. A commit that no thread would wait
// for is left out: `frees_slots`, `frees_stage`.
template <Config kCfg>
DUALGEMM_DEVICE void multiply_stage(SharedStorage<kCfg>& smem, uint32_t tmem_base, uint32_t acc,
                                    const RingPosition<SharedStorage<kCfg>::kStages>& ring,
                                    const RingPosition<kSlots>& slots, bool is_first,
                                    bool frees_slots, bool frees_stage) {
  constexpr uint32_t kInstruction = half_instruction_descriptor(kMmaM, kCfg.tile_m, kCfg.bf16);
  constexpr uint32_t kStepsOfRow = kRowBytes / 2 / kMmaK;  // MMAs for 128 bytes of a row of A
  ptx::mbarrier_wait_parity(&smem.a_full[ring.stage], ring.round_parity);
#pragma unroll
  for (uint32_t group = 0; group < kDecoders; ++group) {
    ptx::mbarrier_wait_parity(&smem.w_full[group][slots.stage], slots.round_parity);
    ptx::tcgen05_fence_after_thread_sync();
    const uint32_t weights =
        tmem_base + Budget<kCfg>::kSlotCol + (group * kSlots + slots.stage) * kSlotCols;
#pragma unroll
    for (uint32_t i = 0; i < kDecodedK / kMmaK; ++i) {
      const uint32_t k = group * (kDecodedK / kMmaK) + i;  // of the stage, in MMAs
      const uint8_t* const rows = smem.stages[ring.stage].a[k / kStepsOfRow];
      const uint64_t a =
          smem_descriptor(ptx::shared_address(rows), kSwizzledRows128B, SmemSwizzle::k128B);
      ptx::tcgen05_mma_f16(acc, weights + i * kMmaCols,
                           advance_descriptor(a, k % kStepsOfRow * (2 * kMmaK)), kInstruction,
                           !is_first || k != 0);
    }
    if (frees_slots) ptx::tcgen05_commit(&smem.w_empty[group][slots.stage]);
  }
  if (frees_stage) ptx::tcgen05_commit(&smem.empty[ring.stage]);
}

// Runs on: one thread of kMmaWarp.   Waits: a_full[stage], w_full[group][slot].   Arrives:
// w_empty[group][slot], empty[stage], acc_full.
template <Config kCfg>
DUALGEMM_DEVICE void issue_mma(SharedStorage<kCfg>& smem, const Tile& tile, uint32_t tmem_base) {
  RingPosition<smem.kStages> ring;
  RingPosition<kSlots> slots;
#pragma unroll 1
  for (uint32_t step = 0; step < tile.num_k_tiles; ++step, ring.advance(), slots.advance()) {
    multiply_stage(smem, tmem_base, tmem_base, ring, slots, step == 0,
                   step + kSlots < tile.num_k_tiles, step + smem.kStages < tile.num_k_tiles);
  }
  ptx::tcgen05_commit(&smem.acc_full[0]);
}

}  // namespace dualgemm::cuda::sm100a_w4a16
