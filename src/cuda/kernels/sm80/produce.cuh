// What producers do: chunk by chunk the rows of A of a tile and its decoded weights go to a stage.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/ring.cuh"
#include "cuda/kernels/sm80/shared_weights.cuh"

namespace dualgemm::cuda::sm80 {

// Chunks begin .. end-1. matrix: of passes that multiply one of them.
template <Config kCfg>
DUALGEMM_DEVICE void produce(const Params& params, const Place& place, const OperandView& matrix,
                             const TileRows<kCfg>& table, uint8_t* stages, RingBarriers& barriers,
                             uint32_t begin, uint32_t end, RingPosition& at) {
  constexpr bool kDecodesA = kCfg.a_type == AType::kE2M1;
  constexpr int kUnits = kOwnUnits<kCfg>;
  const uint32_t first_unit = (threadIdx.x / 32 - warps_of(kCfg)) * kUnits;
  // What waits for a load waits for all that this compiler counts together with it: nothing else is
  // loaded in the loop, and what is loaded there is not used before the next turn.
  RawUnit next[kUnits];
  const auto load = [&](uint32_t chunk) {
#pragma unroll
    for (int unit = 0; unit < kUnits; ++unit)
      load_unit<kCfg>(params, place, matrix, chunk, first_unit + unit, next[unit]);
  };
  load(begin);
  [[maybe_unused]] RawBlocks<kCfg> next_blocks;
  [[maybe_unused]] OwnPieces<kCfg> own;
  if constexpr (kDecodesA) {
    load_blocks<kCfg>(params, table, begin, next_blocks);
  } else {
    own.find(table);
  }
#pragma unroll 1
  for (uint32_t chunk = begin; chunk < end; ++chunk) {
    RawUnit raw[kUnits];
#pragma unroll
    for (int unit = 0; unit < kUnits; ++unit) raw[unit] = next[unit];
    // After the last chunk the last one again: a branch here made the compiler put what is loaded
    // into local memory, which waits for it.
    load(min(chunk + 1, end - 1));
    ptx::mbarrier_wait_parity_sm80<kSleeps<kCfg>>(&barriers.empty[at.stage()], at.parity() ^ 1);
    uint8_t* const rows = stages + at.stage() * stage_bytes_of(kCfg);
    if constexpr (kDecodesA) {
      const RawBlocks<kCfg> blocks = next_blocks;
      load_blocks<kCfg>(params, table, chunk + 1, next_blocks);
      store_blocks<kCfg>(blocks, rows);
    } else {
      copy_halves<kCfg>(params, own, table, chunk, rows);
      ptx::cp_async_commit_group();
    }
#pragma unroll
    for (int unit = 0; unit < kUnits; ++unit)
      store_unit<kCfg>(place, raw[unit], first_unit + unit, rows + a_bytes_of(kCfg));
    if constexpr (!kDecodesA) ptx::cp_async_wait_group<0>();  // they began before the decoding
    arrive_as_warp(barriers.full[at.stage()]);
    at.advance(params.stages);
  }
}

}  // namespace dualgemm::cuda::sm80
