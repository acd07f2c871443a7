// The loop over k of tiles with many rows: both operands come from stages that producers fill, by
// ldmatrix.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/load_a.cuh"
#include "cuda/kernels/sm80/ring.cuh"
#include "cuda/kernels/sm80/sums.cuh"
#include "cuda/ptx/ldmatrix.cuh"

namespace dualgemm::cuda::sm80 {

// Where a lane's 16 bytes of the first ldmatrix of either operand lie in a stage at step 0; at step
// s piece 2s further, which is XOR with 2s, as piece_place() XORs.
template <Config kCfg>
struct FragmentPlaces {
  uint32_t weights, rows;

  DUALGEMM_DEVICE FragmentPlaces() {
    const uint32_t thread = threadIdx.x, warp = thread / 32;
    const uint32_t matrix = thread % 32 / 8, row = thread % 8;
    const uint32_t unit = warp % kCfg.warps_n * loop_units_of(kCfg);
    const uint32_t group = warp / kCfg.warps_n * kCfg.groups;
    weights =
        a_bytes_of(kCfg) + piece_place(unit * kMmaRows + matrix % 2 * kHalfCols + row, matrix / 2);
    rows = piece_place((group + matrix / 2) * kGroupRows + row, matrix % 2);
  }
};

// What a warp multiplies of 16 elements along k: mma's a of each unit, and mma's b of two groups
// and of the next two. What is next is loaded as soon as the MMAs have read its registers: loaded
// where they need it an MMA took 11 clk with two warps a scheduler and 16 with one, where the
// tensor cores need 6 (H200). Two units at a time with all groups loaded, as many registers, the
// compiler put back to one unit: 1547 us for 1475 (4096 rows, (4096, 7168)).
template <Config kCfg>
struct Fragments {
  static constexpr int kUnits = loop_units_of(kCfg), kPairs = kCfg.groups / 2;
  static_assert(kPairs % 2 == 0, "a step ends where it began");
  uint32_t weights[kUnits][4];
  uint32_t rows[2][4];  // of two groups each

  DUALGEMM_DEVICE void load_weights(uint32_t from, int unit) {
    ptx::ldmatrix(from + unit * kMmaRows * kRowBytes, weights[unit]);
  }
  DUALGEMM_DEVICE void load_rows(uint32_t from, int pair) {
    ptx::ldmatrix(from + pair * 2 * kGroupRows * kRowBytes, rows[pair % 2]);
  }
  DUALGEMM_DEVICE void load_first(uint32_t weights_from, uint32_t rows_from) {
    load_rows(rows_from, 0);
#pragma unroll
    for (int unit = 0; unit < kUnits; ++unit) load_weights(weights_from, unit);
  }

  // A step, of which load_first() has been called; then calls that of the next one.
  DUALGEMM_DEVICE void multiply(uint32_t rows_from, uint32_t next_weights_from,
                                uint32_t next_rows_from, LoopSums<kCfg>& sums) {
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      const bool last = pair + 1 == kPairs;
      load_rows(last ? next_rows_from : rows_from, last ? 0 : pair + 1);
#pragma unroll
      for (int unit = 0; unit < kUnits; ++unit) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uint32_t b[2] = {rows[pair % 2][half * 2], rows[pair % 2][half * 2 + 1]};
          ptx::mma_m16n8k16<kCfg.a_type == AType::kBF16>(sums[unit][2 * pair + half], weights[unit],
                                                         b);
        }
        if (last) load_weights(next_weights_from, unit);
      }
    }
  }
};

// So many chunks, at least one. What comes first of a stage is loaded during the last step of the
// one before, so that the tensor cores need not wait between stages.
template <Config kCfg>
DUALGEMM_DEVICE void multiply_rows(const Params& params, uint8_t* stages, RingBarriers& barriers,
                                   uint32_t chunks, RingPosition& at, LoopSums<kCfg>& sums) {
  static_assert(stage_bytes_of(kCfg) % kRowBytes == 0, "XOR with a step reaches no further");
  constexpr uint32_t kStep = 32, kLast = kRowBytes - kStep;
  const uint32_t first_stage = ptx::shared_address(stages);
  const FragmentPlaces<kCfg> places;
  uint32_t weights = first_stage + at.stage() * stage_bytes_of(kCfg) + places.weights;
  uint32_t rows = first_stage + at.stage() * stage_bytes_of(kCfg) + places.rows;
  Fragments<kCfg> fragments;
  ptx::mbarrier_wait_parity_sm80<kSleeps<kCfg>>(&barriers.full[at.stage()], at.parity());
  __syncwarp();
  fragments.load_first(weights, rows);
#pragma unroll 1
  for (; chunks > 0; --chunks) {
    // Unrolled, the compiler needs more registers than there are.
#pragma unroll 1
    for (uint32_t step = 0; step < kLast; step += kStep) {
      fragments.multiply(rows ^ step, weights ^ (step + kStep), rows ^ (step + kStep), sums);
    }
    const uint32_t last_rows = rows ^ kLast, read = at.stage();
    at.advance(params.stages);
    if (chunks > 1) {
      ptx::mbarrier_wait_parity_sm80<kSleeps<kCfg>>(&barriers.full[at.stage()], at.parity());
      const uint32_t further = (at.stage() - read) * stage_bytes_of(kCfg);
      weights += further, rows += further;
    }  // else nothing is there: what is loaded once more is not used
    __syncwarp();
    fragments.multiply(last_rows, weights, rows, sums);
    arrive_as_warp(barriers.empty[read]);
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void multiply_shared(const Params& params, const Place& place, uint8_t* stages,
                                     RingBarriers& barriers, uint32_t chunks, RingPosition& at,
                                     LoopSums<kCfg>& sums) {
  if (chunks > 0 && place.m_begin + place.first_group * kGroupRows < place.m_end) {
    multiply_rows<kCfg>(params, stages, barriers, chunks, at, sums);
    return;
  }
  // A warp that has no rows keeps pace with the ring: producers wait for it.
#pragma unroll 1
  for (; chunks > 0; --chunks) {
    ptx::mbarrier_wait_parity_sm80<kSleeps<kCfg>>(&barriers.full[at.stage()], at.parity());
    arrive_as_warp(barriers.empty[at.stage()]);
    at.advance(params.stages);
  }
}

}  // namespace dualgemm::cuda::sm80
