// The loop over k of wide tiles: warps side by side multiply the same rows of A, from shared
// memory, with weights of their own, which each decodes in registers.
//
// A warp issues what is next, weights, rows and copies, while MMAs of what is at hand run, across
// the ends of chunks: registers allow two warps a scheduler, three with 48 and 64 rows. With a
// barrier of the CTA for each chunk all warps decoded at the same time and multiplied at the same
// time: 377 us for 331 (1024 rows, (4096, 7168), bf16, H200). Warps of their own that decode for
// all took 351.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/load_weights.cuh"
#include "cuda/kernels/sm80/staged_rows.cuh"
#include "cuda/kernels/sm80/sums.cuh"
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/warp.cuh"

namespace dualgemm::cuda::sm80 {

// The barrier of the stages of rows has a phase for each chunk, and one before the first: all warps
// have read it, and filled the stage of the second one after it. It goes on from tile to tile.
struct RowsBarrier {
  ptx::Barrier& barrier;
  uint32_t parity = 0;  // of the phase that is waited for next

  DUALGEMM_DEVICE void arrive() {
    __syncwarp();
    if (ptx::thread_index_anew() % 32 == 0) ptx::mbarrier_arrive(&barrier);
    __syncwarp();  // what follows needs the whole warp
  }
  // kSleeps: between two looks, where a register is left for that.
  template <bool kSleeps>
  DUALGEMM_DEVICE void wait() {
    ptx::mbarrier_wait_parity_sm80<kSleeps>(&barrier, parity);
    parity ^= 1;
    __syncwarp();
  }
};

// Where the stages begin, in the shared window: those of rows of A, then each warp's of weights.
DUALGEMM_DEVICE uint32_t first_rows_of(const uint8_t* stages) {
  return __shfl_sync(~0u, ptx::shared_address(stages), 0);  // known to be the same in all lanes
}
// The first stage of the warp's weights.
template <Config kCfg>
DUALGEMM_DEVICE uint32_t first_weights(uint32_t first_rows) {
  return first_rows + kRowStages * rows_bytes_of(kCfg) +
         ptx::warp_index() * stages_of(kCfg) * weights_bytes_of(kCfg);
}

// Chunks whose weights are asked for before the loop.
inline constexpr uint32_t kChunksAhead = 2;

// Asks for the weights of the first chunks of begin .. end-1, each in a group of its own, into the
// first of the warp's stages, which it has read.
template <Config kCfg>
DUALGEMM_DEVICE void begin_weights(const Params& params, const Place& place,
                                   const OperandView& matrix, const uint8_t* stages, uint32_t begin,
                                   uint32_t end) {
  WeightRing<kCfg> ring(params, place, matrix, begin, first_weights<kCfg>(first_rows_of(stages)));
#pragma unroll
  for (uint32_t ahead = 0; ahead < kChunksAhead; ++ahead) {
    if (begin + ahead < end)
      ring.copy(params, place, matrix, begin + ahead, ahead * weights_bytes_of(kCfg));
    ptx::cp_async_commit_group();
  }
}

// Chunks begin .. end-1, for whose first ones begin_weights() has asked if begins_next_tile(); the
// last one's phase is still to be waited for. matrix: of kSequential.
template <Config kCfg, AType kType, bool kPlain>
DUALGEMM_DEVICE void multiply_wide(const Params& params, const Place& place,
                                   const OperandView& matrix, RowTable& table, uint8_t* stages,
                                   RowsBarrier& read, uint32_t begin, uint32_t end,
                                   LoopSums<kCfg>& sums) {
  constexpr bool kBf16 = kType == AType::kBF16;
  constexpr int kUnits = 2, kAtOnce = at_once_of(kCfg), kParts = kCfg.groups / kAtOnce;
  static_assert(kCfg.groups % kAtOnce == 0);
  static_assert(is_wide(kCfg) && loop_units_of(kCfg) == kUnits && kUnits % kParts == 0);
  // Sums of two products leave no register for scales.
  constexpr bool kKeepsScales = kCfg.pass != Pass::kSequential;
  static_assert(kRowStages == 4 && stages_of(kCfg) == kChunksAhead + 1);
  constexpr uint32_t kRows = rows_bytes_of(kCfg), kWeights = weights_bytes_of(kCfg);
  const uint32_t first_rows = first_rows_of(stages);
  const auto rows_of = [&](uint32_t stage) {
    return static_cast<uint8_t*>(__cvta_shared_to_generic(first_rows + stage * kRows));
  };
  constexpr uint32_t kBegun = begins_next_tile(kCfg) ? kChunksAhead : 0;
  WeightRing<kCfg> ring(params, place, matrix, begin + kBegun, first_weights<kCfg>(first_rows));
  const auto copy = [&](uint32_t chunk, uint32_t slot) {
    if (chunk < end) ring.copy(params, place, matrix, chunk, slot);
    ptx::cp_async_commit_group();
  };
  // The first three chunks' rows are asked for together: one after the other they took a way to
  // memory each.
  RowStager<kCfg, kType, kPlain> stager(params, place, table);
  auto first = stager, second = stager;
  first.load(params, begin);
  if constexpr (kBegun == 0) {
    copy(begin, 0);
    copy(begin + 1, kWeights);
  }
  second.load(params, begin + 1);
  stager.load(params, begin + 2);
  first.store(rows_of(0));
  second.store(rows_of(1));
  ptx::cp_async_wait_group<1>();
  __syncwarp();
  __syncthreads();
  read.arrive();  // as of a chunk before the first one

  StageRows rows{rows_of(0), place.row, place.quarter};
  uint4 eights[kAtOnce];
#pragma unroll
  for (int group = 0; group < kAtOnce; ++group) eights[group] = rows.take(group, 0);
  uint32_t scales[kUnits];
  Decoded next[kUnits];
#pragma unroll
  for (int unit = 0; unit < kUnits; ++unit) {
    scales[unit] = load_scales<kCfg, kBf16>(ring.stage(0), unit);
    next[unit] = decode<kCfg, kBf16>(ring.stage(0), unit, 0, scales[unit]);
  }
  uint32_t stage = 0, slot = 0;
#pragma unroll 1
  for (uint32_t chunk = begin; chunk < end; ++chunk) {
    stager.store(rows_of(stage ^ 2));
    copy(chunk + kChunksAhead, slot == 0 ? 2 * kWeights : slot - kWeights);
    if constexpr (!kCfg.prepared) __syncwarp();  // copies have branches, mma needs the whole warp
    stager.load(params, chunk + 3);
    const uint32_t next_stage = (stage + 1) % kRowStages;
    // After the last chunk the last one again, as there is no other: it is not used.
    const uint32_t next_slot = chunk + 1 == end ? slot : slot == 2 * kWeights ? 0 : slot + kWeights;
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      const Decoded now[kUnits] = {next[0], next[1]};
      if (word == 1) {
        ptx::cp_async_wait_group<1>();  // the next chunk's weights
        __syncwarp();
      }
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const bool part_is_last = part + 1 == kParts;
#pragma unroll
        for (int i = 0; i < kUnits / kParts; ++i) {
          const int unit = part * kUnits / kParts + i;
          const uint8_t* const from = ring.stage(word == 0 ? slot : next_slot);
          if (word == 1 || !kKeepsScales) scales[unit] = load_scales<kCfg, kBf16>(from, unit);
          next[unit] = decode<kCfg, kBf16>(from, unit, 1 - word, scales[unit]);
        }
        if (word == 1 && part_is_last) {
          read.wait<kParts == 1>();  // for the phase of the chunk before this one
          rows.stage = rows_of(next_stage);
        }
        const int next_part = part_is_last ? 0 : part + 1,
                  next_word = part_is_last ? 1 - word : word;
#pragma unroll
        for (int step = 0; step < 2; ++step) {
#pragma unroll
          for (int unit = 0; unit < kUnits; ++unit) {
#pragma unroll
            for (int group = 0; group < kAtOnce; ++group) {
              multiply_step<kBf16>(now[unit], eights[group], step,
                                   sums[unit][part * kAtOnce + group]);
              if (unit + 1 == kUnits && step == 1)
                eights[group] = rows.take(next_part * kAtOnce + group, next_word);
            }
          }
        }
      }
    }
    read.arrive();
    stage = next_stage, slot = next_slot;
  }
}

}  // namespace dualgemm::cuda::sm80
